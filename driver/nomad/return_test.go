package nomad_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

// A version that was changed here may come back by Nomad's own ways. Its owner has written
// nothing then: his settings stay his, and the change stays ours to take back.
func TestAChangeThatComesBackIsNotItsOwners(t *testing.T) { // not parallel: a machine has its limits
	stories(t, map[string]func(*testing.T, *story){
		"2.2 a revert to a version that was changed here": func(t *testing.T, s *story) {
			s.comesBack(t, func(id driver.JobID, name string) {
				job := s.wait(t, id, "the second attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 2 })
				s.works(t, id)
				s.drives(t, s.intent(job, "second", driver.Change{MemoryBytes: 220 << 20}), driver.StepStarted)
				done(t)(s.clean.Jobs().Revert(name, 1, nil, s.write(), "", ""))
			})
		},
		"2.2 a stop and a start of a job that was changed here": func(t *testing.T, s *story) {
			s.comesBack(t, func(id driver.JobID, name string) {
				done(t)(s.clean.Jobs().Deregister(name, false, s.write()))
				eventually(t, "it is over", func() bool {
					return !slices.ContainsFunc(s.allocs(t, id), func(a *api.AllocationListStub) bool {
						return a.ClientStatus == "running" || a.ClientStatus == "pending"
					})
				})
				s.wait(t, id, "it is over", ended)
				job := s.nomadJob(t, id) // as "nomad job start" does
				job.Stop = new(false)
				done(t)(s.clean.Jobs().Register(job, s.write()))
			})
		},
	})
}

// comesBack changes a job, does something that brings the change back, and wants the last
// attempt to be known as changed by us.
func (s *story) comesBack(t *testing.T, does func(id driver.JobID, name string)) {
	t.Helper()
	id, job := s.runs(t, mover(long), nil)
	s.drives(t, s.intent(job, "first", driver.Change{MemoryBytes: 200 << 20}), driver.StepStarted)
	before := s.wait(t, id, "the second attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 2 })
	does(id, strings.TrimSuffix(string(id), "@"+s.ns))
	got := s.wait(t, id, "it runs again", func(j driver.Job) bool {
		return running(j) && j.Attempts[j.Attempt-1].Unit != before.Attempts[1].Unit && j.Attempts[j.Attempt-1].Started.After(before.Attempts[1].Started) && j.Change.MemoryBytes != 220<<20
	})
	last := got.Attempts[got.Attempt-1]
	if got.Fingerprint != job.Fingerprint || got.Resources.MemoryBytes != 128<<20 {
		t.Errorf("its owner's fingerprint is the same: %v, his memory %d bytes; want what he wrote", got.Fingerprint == job.Fingerprint, got.Resources.MemoryBytes)
	}
	if last.Change.MemoryBytes != 200<<20 || last.Cause != driver.CauseSubmitted || last.Intent != "" {
		t.Errorf("attempt %d of %d: %+v, want the change that came back, by its owner", got.Attempt, len(got.Attempts), last)
	}
	s.works(t, id)
	s.drives(t, s.intent(s.get(t, id), "back", driver.Change{}), driver.StepStarted)
	if mib := *s.nomadJob(t, id).TaskGroups[0].Tasks[0].Resources.MemoryMB; mib != 128 {
		t.Errorf("%d MiB, want its owner's", mib)
	}
	// A later look sees the same.
	s.reopen(t)
	if got := s.wait(t, id, "it runs", running); got.Fingerprint != job.Fingerprint {
		t.Error("the fingerprint is another when the controller is started again")
	}
}
