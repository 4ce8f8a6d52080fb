package server

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"parley/actors/realm"
	"parley/wire"
)

// The server connects to no private address for a notification of a browser, by number, by name or in another form,
// unless the operator allows the network: users choose the addresses.
func TestWebPushGuardsPrivateAddresses(t *testing.T) {
	var connections atomic.Int64
	service := httptest.NewUnstartedServer(http.NotFoundHandler())
	service.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	service.StartTLS()
	defer service.Close()
	_, port, err := net.SplitHostPort(service.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	send := func(d *demoServer, host string) error {
		return d.push.Pusher.Test(wire.PushOrigin{RealmID: 1}, realm.PushToken{Kind: realm.PushWeb,
			Token: "https://" + net.JoinHostPort(host, port) + "/1", Keys: realm.WebPushKeys{
				Public: base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()),
				Secret: base64.RawURLEncoding.EncodeToString(make([]byte, 16))}})
	}
	guarded := startDemo(t)
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0"} {
		if err := send(guarded, host); err == nil || strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections to a private address", n)
	}
	// The same service is reached if it is allowed, so the refusals above are those of the guard.
	allowing := startDemo(t, func(s *Settings) {
		s.WebhooksAllow = "127.0.0.0/8"
	})
	if err := send(allowing, "127.0.0.1"); err == nil || connections.Load() == 0 {
		t.Errorf("an allowed address: %v, %d connections", err, connections.Load())
	}
}
