package nomad

import (
	"slices"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// begin tells with which version the job began that the id stands for now, and leaves out
// what ran before. A job file that is run again after its job has ended is a new job
// under the same id: it was submitted then, and has its own attempts. A registration
// while an attempt runs, and one that is not its owner's, is of the same job.
func (d *Driver) begin(f *facts) {
	r := f.rec
	first := uint64(0)
	if r != nil {
		first = r.First
	}
	// What was asked to leave by an intent in progress has not ended.
	// A change that was taken back leaves what the owner wrote, and he has run nothing.
	back := r != nil && r.Own != nil && r.Back != 0 && f.version() == r.Back && spec.Same(f.own, r.Own)
	owners := !back && f.ownersWord() && !f.foreign && (r == nil || r.Moving == nil)
	if v := f.version(); owners && v != first && !f.stopped() && ended(f.allocs, v, deref(f.job.JobModifyIndex)) {
		first = v
		if r != nil && r.Own != nil {
			d.cfg.Logger.Info("its owner runs it again", "job", string(f.id), "version", v)
			// Intents of the job before are nobody's any more, and whoever names them by
			// the job may give one of their names again.
			*r = record{Job: r.Job, Index: r.Index, Own: f.own, First: first, saved: r.saved}
		}
	}
	f.first = first
	f.allocs = slices.DeleteFunc(f.allocs, func(a *api.AllocationListStub) bool { return a.JobVersion < first })
}

// ended reports whether there were allocations before a version, and all of them were over
// when it was registered: nothing has happened to them since.
func ended(allocs []*api.AllocationListStub, version, registered uint64) bool {
	some := false
	for _, a := range allocs {
		if a.JobVersion >= version {
			continue
		}
		if !view.Over(a) || a.ModifyIndex > registered {
			return false
		}
		some = true
	}
	return some
}
