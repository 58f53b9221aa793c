package spawn

import (
	"testing"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func TestChecksumsAreThoseOfTheStandard(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint32{"": 4294967295, "123456789": 930766865, "hello\n": 3015617425} {
		if got := checksum([]byte(text)); got != want {
			t.Errorf("%q has %d, want %d", text, got, want)
		}
	}
}

func TestChildrenAnswerRightly(t *testing.T) {
	t.Parallel()
	s, err := New(epochs.Params{Input: 1, Seed: 1, Scale: 0.02, Team: team.New(2)})
	if err != nil {
		t.Skip(err)
	}
	if r, err := s.Epoch(t.Context(), 1); err != nil || r.Acc != 1 || s.digest == 0 {
		t.Errorf("%+v, %v, digest %x", r, err, s.digest)
	}
}

func TestAChildThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	s := &Spawner{params: epochs.Params{Scale: 0.02, Team: team.New(1)}, path: "/nonexistent/cksum", length: 8}
	if _, err := s.Epoch(t.Context(), 1); err == nil {
		t.Error("no error")
	}
}
