package faultslurm_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// add makes a job known to all rounds.
func (w *world) add(j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs == nil {
		w.jobs = map[string]*job{}
	}
	w.jobs[j.id] = j
}

// through notes that Slurm has done with a job.
func (w *world) through(j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over == nil {
		w.over = map[string]bool{}
	}
	w.over[j.id] = true
}

// known is a job that Slurm has not done with, as far as anybody knows; nil if it is not
// ours.
func (w *world) known(id string) *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over[id] {
		return nil
	}
	return w.jobs[id]
}

// every are the jobs of all rounds.
func (w *world) every() []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.jobs))
}

// records is what scontrol shows of every job, by its id.
func (w *world) records() (map[string]record, error) {
	out, err := w.run("slurm", "scontrol", "-o", "show", "job")
	if err != nil {
		return nil, err
	}
	all := map[string]record{}
	for line := range strings.Lines(out) {
		r := record{}
		for word := range strings.FieldsSeq(line) {
			if key, value, ok := strings.Cut(word, "="); ok && r[key] == "" {
				r[key] = value
			}
		}
		if id := r["JobId"]; id != "" {
			all[id] = r
		}
	}
	return all, nil
}

// record is what scontrol shows of a job.
type record map[string]string

func (r record) restarts() int {
	n, err := strconv.Atoi(r["Restarts"])
	if err != nil {
		return 0
	}
	return n
}

// ended reports whether Slurm has done with a job.
func (r record) ended() bool {
	switch r["JobState"] {
	case "PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "REQUEUED", "SPECIAL_EXIT", "REQUEUE_HOLD", "":
		return false
	}
	return true
}

// show is one line for a failure.
func (r record) show() string {
	return fmt.Sprintf("%s %s restarts %s exit %s cpus %s limit %s start %s end %s", r["JobState"], r["Reason"], r["Restarts"], r["ExitCode"],
		r["NumCPUs"], r["TimeLimit"], r["StartTime"], r["EndTime"])
}

// same reports whether nothing happened to a job: some of what is shown of it is the time.
func (r record) same(other record) bool {
	a, b := maps.Clone(r), maps.Clone(other)
	for _, key := range []string{"RunTime", "LastSchedEval", "EndTime", "StartTime"} {
		if a["JobState"] == b["JobState"] {
			delete(a, key)
			delete(b, key)
		}
	}
	return maps.Equal(a, b)
}
