package daemon

import (
	"errors"
	"testing"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/peer"
)

func TestAUserOwnsTheJobsOfHisNamespaces(t *testing.T) {
	t.Parallel()
	people := []config.Person{{Namespace: "train", Name: "alice"}, {Namespace: "open", Name: "*"}, {Namespace: "both", Name: "alice"}, {Namespace: "both", Name: "bob"}}
	for _, tt := range []struct {
		name, driver, caller, namespace string
		want                            bool
	}{
		{"to her to whom it is given", "nomad", "alice", "train", true},
		{"and to no other", "nomad", "bob", "train", false},
		{"to everybody", "nomad", "carol", "open", true},
		{"to each of several", "nomad", "bob", "both", true},
		{"to a user of its name", "nomad", "solo", "solo", true},
		{"a namespace that is given to no user", "nomad", "alice", "default", false},
		{"where owners are users nothing is given", "local", "alice", "train", false},
	} {
		cfg := config.Config{Driver: tt.driver, Nomad: config.Nomad{People: people, Namespaces: []string{"train", "open", "both", "solo", "default"}}}
		r := request{who: known(cfg, peer.Peer{UID: 1 << 30, Name: tt.caller}), d: &Daemon{cfg: cfg, services: &services{pauses: &pauses{}}}}
		if got, err := r.who.May(tt.namespace), r.mayPause(ScopeUser, tt.namespace); got != tt.want || (err == nil) != tt.want {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
		if err := r.mayPause(ScopeUser, tt.caller); errors.Is(err, errInput) != (tt.driver == "nomad" && tt.caller != "solo") {
			t.Errorf("%s: it pauses itself: %v", tt.name, err)
		}
	}
}
