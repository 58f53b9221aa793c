package daemon

import (
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
		cfg := config.Config{Driver: tt.driver, Nomad: config.Nomad{People: people}}
		if got := known(cfg, peer.Peer{UID: 1 << 30, Name: tt.caller}).May(tt.namespace); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
