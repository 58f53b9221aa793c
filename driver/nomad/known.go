package nomad

import "pitchpipe/driver"

// What is known of jobs, for those who look at lists.

func (d *Driver) stanza(id driver.JobID) (seen, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.stanzas[id]
	return s, ok
}

func (d *Driver) learned(id driver.JobID, s seen) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stanzas[id] = s
}

// unlearn forgets what was known of jobs of a namespace that are not there any more.
func (d *Driver) unlearn(namespace string, there map[driver.JobID]struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.stanzas {
		if _, ok := there[id]; !ok && place(id).namespace == namespace {
			delete(d.stanzas, id)
			delete(d.glances, id)
			delete(d.outlooks, id)
		}
	}
}

// carries tells whether a job is one to see: it carries a stanza or is on record.
func (d *Driver) carries(id driver.JobID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.records[id]
	return ok || d.stanzas[id].stanza
}

func (d *Driver) onRecord(id driver.JobID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.records[id]
	return ok
}

func (d *Driver) held(id driver.JobID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.records[id].held
}

// unfinished are the jobs on record of which something is true.
func (d *Driver) unfinished(is func(brief) bool) []driver.JobID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []driver.JobID
	for id, r := range d.records {
		if is(r) {
			out = append(out, id)
		}
	}
	return out
}

// verifying tells whether a registration of ours is being verified.
func (d *Driver) verifying() bool {
	return len(d.unfinished(func(r brief) bool { return r.changing })) > 0
}
