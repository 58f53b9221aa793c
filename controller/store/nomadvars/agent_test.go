package nomadvars_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/controller/store"
	"pitchpipe/controller/store/nomadvars"
	"pitchpipe/test/nomadagent"
)

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	client, err := api.NewClient(&api.Config{Address: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]nomadvars.Config{
		"no client": {Prefix: "p"}, "no prefix": {Client: client}, "a prefix with a dot": {Client: client, Prefix: "a.b"},
		"what Nomad keeps for itself": {Client: client, Prefix: "nomad/jobs/x"},
		"a prefix that is too long":   {Client: client, Prefix: "a234567890123456789012345678901234567890123456789"},
	} {
		if _, err := nomadvars.New(cfg); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnAgentThatIsNotThereIsUnavailable(t *testing.T) {
	t.Parallel()
	client, err := api.NewClient(&api.Config{Address: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := nomadvars.New(nomadvars.Config{Client: client, Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // there is nothing to release
	_, get := s.Get(t.Context(), "key")
	_, put := s.Put(t.Context(), "key", nil, 0)
	_, leader := s.Leader(t.Context(), "name")
	for call, err := range map[string]error{"get": get, "put": put, "leader": leader} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// Nomad frees a lock that lapsed when its delay is over, whoever has it by then: what
// the package is careful about. Where a later Nomad does not, this test may go.
func TestNomadFreesTheNextHoldersLockAfterALateRelease(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a lock to lapse, 20 s and more")
	}
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real})
	vars := a.Client(t).Variables()
	acquire := func(id string) error {
		_, _, err := vars.AcquireLock(&api.Variable{
			Path: "trap", Items: api.VariableItems{"holder": id}, Lock: &api.VariableLock{ID: id, TTL: "10s", LockDelay: "8s"},
		}, nil)
		return err
	}
	holds := func(id string) error {
		_, _, err := vars.RenewLock(&api.Variable{Path: "trap", Lock: &api.VariableLock{ID: id}}, nil)
		return err
	}
	const first, second = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	if err := acquire(first); err != nil {
		t.Fatal(err)
	}
	if err := holds(first); err != nil { // from now on it lives for twice its time
		t.Fatal(err)
	}
	time.Sleep(21 * time.Second) // it lapsed, and its delay goes on
	if _, _, err := vars.ReleaseLock(&api.Variable{Path: "trap", Lock: &api.VariableLock{ID: first}}, nil); err != nil {
		t.Skip("this Nomad takes no late release: ", err)
	}
	if err := acquire(second); err != nil {
		t.Fatal(err)
	}
	if err := holds(second); err != nil {
		t.Fatalf("the second has the lock and does not hold it: %v", err)
	}
	for deadline := time.Now().Add(12 * time.Second); holds(second) == nil; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Skip("this Nomad leaves the lock of the next holder alone")
		}
	}
	t.Log("the second lost its lock to the delay of the first")
}
