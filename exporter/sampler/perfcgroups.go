package sampler

import (
	"errors"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
)

// placeForPerf moves the processes of a scheduler's job to a cgroup where perf looks, where
// that is wanted, and reports whether the job got one just now. The local scheduler makes
// its own.
func (s *Sampler) placeForPerf(j *job) bool {
	if s.cfg.PerfCgroups == nil || !j.found.Confirmed || j.found.Key.Manager == attrib.Local {
		return false
	}
	if j.found.Dirs[s.cfg.PerfCgroups.Hierarchy()] != "" { // some make it after the others
		had := j.perfDir != ""
		s.removePerfCgroup(j)
		return had
	}
	found, had, name := j.found, j.perfDir != "", perfCgroupName(j)
	dir, err := collector.Get(s.worker(finding), func() (string, error) {
		if pids := found.Processes(); len(pids) > 0 || had { // else it is being made
			return s.cfg.PerfCgroups.Put(name, pids)
		}
		return "", nil
	})
	if errors.Is(err, collector.ErrSilent) {
		return false
	}
	if err != nil {
		s.stats.ReadErrors++
	}
	j.perfDirFault.set(err)
	j.perfDirFault.log(s.log, "the perf cgroup of "+j.stored.String())
	if dir == "" || dir == j.perfDir {
		return false
	}
	j.perfDir = dir
	return true
}

// removePerfCgroup removes the perf cgroup of a job that is over.
func (s *Sampler) removePerfCgroup(j *job) {
	if j.perfDir == "" {
		return
	}
	name, remove := j.stored.String(), perfCgroupName(j)
	s.worker(finding).Then(func() {
		if err := s.cfg.PerfCgroups.Remove(remove); err != nil {
			s.log.Debug("perf cgroup stays", "job", name, "err", err)
		}
	})
	j.perfDir = ""
}

// perfCgroupName does not hold the attempt, whose number may become known later: of one
// job one attempt runs.
func perfCgroupName(j *job) string { return j.found.Key.Manager + "-" + j.found.Key.ID }
