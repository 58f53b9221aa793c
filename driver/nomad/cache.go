package nomad

import (
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

// cached is what is kept of a job between calls.
type cached struct {
	record   *brief      // what the journal has of it, in short; nil: nothing
	seen     seen        // whether it carries a stanza
	snapshot *snapshot   // nil: something was done to it since it was read
	last     *driver.Job // as it was last read, for lists that show one that cannot be read
}

// seen is whether a registration carries a stanza. The zero value: it was not read.
type seen struct {
	index     uint64 // of the registration
	submitted int64  // when, in nanoseconds: indexes of a cluster that is set up again repeat
	stanza    bool
	again     time.Time // it could not be read: when to ask again; zero: it was read
}

// of reports whether it is about the registration that a list shows.
func (s seen) of(stub *api.JobListStub) bool {
	return s.index == stub.JobModifyIndex && s.submitted == stub.SubmitTime
}

func (d *Driver) peek(id driver.JobID) cached {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.jobs[id]; c != nil {
		return *c
	}
	return cached{}
}

func (d *Driver) keep(id driver.JobID, change func(*cached)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.jobs[id]
	if c == nil {
		c = &cached{}
		d.jobs[id] = c
	}
	change(c)
}

func (d *Driver) learned(id driver.JobID, s seen) {
	d.keep(id, func(c *cached) { c.seen = s })
}

// unlearn forgets what was known of jobs that the list of a namespace, or of all, does not
// show any more, but for how a job was before somebody took it out.
func (d *Driver) unlearn(namespace string, there map[driver.JobID]struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, c := range d.jobs {
		if _, ok := there[id]; ok || namespace != api.AllNamespacesNamespace && place(id).namespace != namespace {
			continue
		}
		last := c.last
		if last != nil && last.State.Ended() {
			last = nil
		}
		if *c = (cached{record: c.record, last: last}); c.record == nil && last == nil {
			delete(d.jobs, id)
		}
	}
}

// which returns the jobs on record for which something is true.
func (d *Driver) which(is func(brief) bool) []driver.JobID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []driver.JobID
	for id, c := range d.jobs {
		if c.record != nil && is(*c.record) {
			out = append(out, id)
		}
	}
	return out
}

func unfinished(r brief) bool { return !r.ended }

// verifying reports whether a registration of ours is being verified.
func verifying(r brief) bool { return r.changing }
