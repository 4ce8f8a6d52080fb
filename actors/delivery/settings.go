package delivery

import (
	"time"

	"parley/actors/registry"
)

// Settings are the settings of the delivery.
type Settings struct {
	DeliveryLag time.Duration
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "delivery-lag", Default: DefaultDeliveryLag.String(), Group: registry.Limits, Value: &s.DeliveryLag,
			Meaning: "how long events may wait for their delivery before further requests of their organization " +
				"wait; " +
				"0: they never wait",
		},
	}
}
