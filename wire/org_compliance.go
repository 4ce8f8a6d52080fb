package wire

import "parley/actors/realm"

// Requests for compliance exports are an extension of the protocol: owners of an organization that demands it agree to
// each export, before the operator of the server makes it.
var complianceEndpoints = []Endpoint{
	Get("/compliance_exports", func(c *Call, v realm.View, _ noParameters) (*complianceAnswer, error) {
		list, err := v.ComplianceRequests()
		return &complianceAnswer{v.TwoOwnersExport(), each(list, func(q realm.ComplianceRequest) complianceJSON {
			return newComplianceRequest(q, v.Now)
		})}, err
	}).extension(complianceReason),
	CommandFromCall("PATCH", "/compliance_exports", demandTwoOwners, newComplianceID).extension(complianceReason),
	CommandFromCall("POST", "/compliance_exports", func(c *Call, f complianceForm) (realm.AskComplianceExport, error) {
		return realm.AskComplianceExport{Criteria: realm.ComplianceCriteria{Persons: f.Users, Channels: f.Channels,
			From: f.Start, To: f.End, Search: f.Search, Format: f.Format}}, c.confirmAct(realm.Owner)
	}, newComplianceID).extension(complianceReason),
	CommandFromCall("POST", "/compliance_exports/{request_id}", answerComplianceRequest, emptyAnswer).
		extension(complianceReason),
}

// complianceReason is why these endpoints exist.
const complianceReason = "requests for compliance exports, which Zulip's API does not have"

type complianceDemandForm struct {
	TwoOwners bool `form:"two_owners,required"`
}

func demandTwoOwners(c *Call, f complianceDemandForm) (realm.DemandTwoOwners, error) {
	return realm.DemandTwoOwners{On: f.TwoOwners}, c.confirmAct(realm.Owner)
}

// complianceForm has the criteria of an export. Empty ones choose all messages. start and end are Unix seconds.
type complianceForm struct {
	Users    []realm.UserID    `form:"user_ids,maxitems=50"`
	Channels []realm.ChannelID `form:"channel_ids,maxitems=50"`
	Start    int64             `form:"start,min=0,default=0"`
	End      int64             `form:"end,min=0,default=0"`
	Search   string            `form:"search"`
	Format   string            `form:"format,default=jsonl,in=jsonl|csv|eml"`
}

type complianceReply struct {
	ID      int64 `path:"request_id"`
	Approve bool  `form:"approve,required"`
}

// answerComplianceRequest approves or refuses a request. Two owners must agree, so a login of the operator as one of
// them must not be enough.
func answerComplianceRequest(c *Call, f complianceReply) (realm.AnswerComplianceRequest, error) {
	return realm.AnswerComplianceRequest{ID: f.ID, Approve: f.Approve}, c.confirmAct(realm.Owner)
}

// complianceIDAnswer has the number of the new request, null if the change was made at once.
type complianceIDAnswer struct {
	ID int64 `json:"id" zero:"null"`
}

func newComplianceID(q realm.ComplianceRequest) complianceIDAnswer { return complianceIDAnswer{q.ID} }

type complianceAnswer struct {
	TwoOwners bool             `json:"two_owners"`
	Requests  []complianceJSON `json:"requests"`
}

// complianceJSON is a request. Of a request to end the demand, the criteria are empty.
type complianceJSON struct {
	ID        int64             `json:"id"`
	At        int64             `json:"timestamp"`
	State     string            `json:"state" enum:"pending|approved|refused|used|expired"`
	EndDemand bool              `json:"ends_demand"`
	Owners    []realm.UserID    `json:"owner_ids"`
	RefusedBy realm.UserID      `json:"refused_by" zero:"null"`
	Users     []realm.UserID    `json:"user_ids"`
	Channels  []realm.ChannelID `json:"channel_ids"`
	Start     int64             `json:"start" zero:"null"`
	End       int64             `json:"end" zero:"null"`
	Search    string            `json:"search"`
	Format    string            `json:"format"`
}

func newComplianceRequest(q realm.ComplianceRequest, now int64) complianceJSON {
	c := q.Criteria
	return complianceJSON{q.ID, q.At, q.State(now), q.End, q.Owners, q.RefusedBy, c.Persons, c.Channels, c.From, c.To,
		c.Search, c.Format}
}
