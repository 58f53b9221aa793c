package slurm_test

import "testing"

// The whole of it: the job files that ship run as they are; then a user's own
// controller and a site's tune jobs at the same time, each in its own partition,
// while the job files are tuned in both modes, one after the other and alone on their
// node, which gives the table.
func TestJobsAreTunedOnSlurmInBothModes(t *testing.T) {
	s := newStage(t)
	t.Run("the job files that ship run as they are", func(t *testing.T) {
		if testing.Short() {
			t.Skip("eleven job files run, one after the other: make check runs it")
		}
		s.in(t).jobFiles()
	})
	own, site := s.ownDeployment(), s.siteDeployment()
	t.Run("tuning", func(t *testing.T) {
		t.Run("by a user's own controller", func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				t.Skip("a site's is enough beside other tests: make check runs it")
			}
			s.in(t).ownerStory(own)
		})
		t.Run("by the controller of a site", func(t *testing.T) {
			t.Parallel()
			s.in(t).siteStory(site)
		})
		t.Run("of the job files", func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				t.Skip("each job file is tuned for minutes: make check runs it")
			}
			s.in(t).table(own, site)
		})
	})
	t.Run("a search runs as jobs of its user", func(t *testing.T) { s.in(t).searchStory(own) })
	t.Run("a running job is asked to take an action", func(t *testing.T) {
		if testing.Short() {
			t.Skip("three jobs run, one after the other: make check runs it")
		}
		s.in(t).adaptStory(own)
	})
	if *all { // next to other tests nothing is sure about what a job makes of its cores
		t.Run("jobs that ask for more than they use end and begin on less", func(t *testing.T) { s.in(t).oversizedStory(own) })
		t.Run("a recurring training job gets another batch size", func(t *testing.T) { s.in(t).batchStory(own) })
		t.Run("jobs beside a busy process lose little", func(t *testing.T) { s.in(t).neighbourStory(own) })
		t.Run("memory that a job does not need is given up, and given back", func(t *testing.T) {
			for _, h := range []deployment{own, site} {
				t.Run("by mode "+h.mode, func(t *testing.T) { t.Parallel(); s.in(t).memoryStory(h) })
			}
		})
	}
}
