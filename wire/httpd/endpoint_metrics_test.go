package httpd

import (
	"testing"
	"time"
)

// Answers are counted by endpoint, refusals and failures apart. Unknown paths take no memory.
func TestEndpointMetrics(t *testing.T) {
	s := &Server{endpoints: newEndpointCounts()}
	known := len(s.endpoints)
	began := time.Now()
	s.countEndpoint("GET /messages", 200, began)
	s.countEndpoint("GET /messages", 400, began)
	s.countEndpoint("GET /messages", 503, began.Add(-time.Second))
	s.countEndpoint("GET /unknown", 404, began)
	got := map[string]float64{}
	for _, m := range s.EndpointMetrics() {
		m.Each(func(label string, v float64) {
			if label != "GET /messages" {
				t.Errorf("%s has the label %s", m.Name, label)
			}
			got[m.Name] = v
		})
	}
	for name, want := range map[string]float64{"requests": 3, "refused": 1, "failed": 1, "slow": 1} {
		if v := got["parley_http_endpoint_"+name+"_total"]; v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if v := got["parley_http_endpoint_seconds_total"]; v < 1 || v > 60 {
		t.Errorf("the total time is %v", v)
	}
	if len(s.endpoints) != known {
		t.Error("an unknown path has a counter")
	}
}
