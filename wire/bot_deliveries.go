package wire

import "parley/actors/realm"

// The calls of bots' services are an extension of the protocol: owners of outgoing-webhook bots see how the last calls
// ended, and can test the service.
var deliveryEndpoints = []Endpoint{
	Custom("GET", "/bots/{bot_id}/deliveries", func(c *Call, f botIDForm) (*deliveriesAnswer, error) {
		return deliveriesOf(c, f.Bot)
	}).extension(callsOfServices),
	CommandFromForm("POST", "/bots/{bot_id}/deliveries", func(f botIDForm) realm.TestService {
		return realm.TestService{Bot: f.Bot}
	}, func(id int64) *testedServiceAnswer { return &testedServiceAnswer{id} }).extension(callsOfServices),
}

// callsOfServices is why these endpoints exist.
const callsOfServices = "the owner of a bot sees why calls of its service failed"

type deliveriesAnswer struct {
	Deliveries []deliveryJSON `json:"deliveries"`
	Waiting    int            `json:"waiting"`
	Secret     string         `json:"signing_secret"`
}

type testedServiceAnswer struct {
	ID int64 `json:"delivery_id"`
}

// deliveryJSON is a call of a service. A test has no message, and shows the beginning of the service's answer.
type deliveryJSON struct {
	ID       int64           `json:"id"`
	Time     int64           `json:"timestamp"`
	Message  realm.MessageID `json:"message_id" zero:"null"`
	Attempts int64           `json:"attempts"`
	Status   int64           `json:"status_code" zero:"null"`
	Took     int64           `json:"duration_ms"`
	Failure  string          `json:"failure" zero:"null"`
	Answer   string          `json:"answer" zero:"null"`
}

func deliveriesOf(c *Call, bot realm.UserID) (*deliveriesAnswer, error) {
	list, err := Execute(c, realm.ListBotDeliveries{Bot: bot})
	if err != nil {
		return nil, err
	}
	return &deliveriesAnswer{each(list.List, func(d realm.BotDelivery) deliveryJSON {
		return deliveryJSON{d.ID, d.Time, d.Message, d.Attempts, d.Status, d.Took, d.Why, d.Answer}
	}), list.Waiting, list.Secret}, nil
}
