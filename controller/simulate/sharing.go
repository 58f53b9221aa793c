package simulate

import (
	"cmp"
	"math"
)

// speed is how fast two jobs run on the same GPUs, by an estimate: full, unless together they need more GPU time than there
// is.
func speed(a, b *Job) float64 { return 1 / max(1, prospects(a).alone.Busy+prospects(b).alone.Busy) }

// sharer reports whether a job may share its GPUs, and does not share them yet. One with a limit might miss it.
func (o *pitchpipePolicy) sharer(j *Job) bool {
	m := prospects(j)
	return j.Units <= largest && m.alone.Memory > 0 && m.partner == nil && !m.leaving && math.IsInf(j.limit, 1) && o.pool.Ran(j) >= profiling
}

// host is the job whose GPUs another shares at the highest speed, of several the least urgent; nil: none.
func (o *pitchpipePolicy) host(j *Job) *Job {
	if !o.sharer(j) {
		return nil
	}
	var best *Job
	for _, h := range o.pool.Running {
		if h == j || h.Units != j.Units || !o.sharer(h) || prospects(h).alone.Memory+prospects(j).alone.Memory >= memory || speed(j, h) < slowest {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(speed(j, h), speed(j, best)), cmp.Compare(prospects(h).index, prospects(best).index)) > 0 {
			best = h
		}
	}
	return best
}

func (o *pitchpipePolicy) pack(j *Job) bool {
	h := o.host(j)
	if h != nil {
		o.share(j, h)
	}
	return h != nil
}

func (o *pitchpipePolicy) share(j, h *Job) {
	mine, its := rates(o.models, j.Kind, h.Kind)
	o.pool.Pack(j, h, mine, its)
	prospects(j).partner, prospects(h).partner = h, j
}

// leave gives the GPUs of a job to its partner alone.
func (o *pitchpipePolicy) leave(j *Job) {
	m := prospects(j)
	if m.partner == nil {
		return
	}
	o.pool.SetRate(m.partner, 1)
	prospects(m.partner).partner, m.partner = nil, nil
}

// displace stops jobs: some go on beside others, and the rest wait. It stops none where one of the rest has an index below the
// bar.
func (o *pitchpipePolicy) displace(jobs []*Job, bar float64) bool {
	hosts, may := make([]*Job, len(jobs)), true
	for _, j := range jobs {
		prospects(j).leaving = true
	}
	for i, j := range jobs {
		prospects(j).leaving = false
		if hosts[i] = o.host(j); hosts[i] != nil {
			prospects(hosts[i]).leaving = true
		}
		prospects(j).leaving = true
		may = may && (hosts[i] != nil || prospects(j).index > bar)
	}
	for i, j := range jobs {
		prospects(j).leaving = false
		if hosts[i] != nil {
			prospects(hosts[i]).leaving = false
		}
		if !may {
			continue
		}
		if o.stop(j); hosts[i] != nil {
			o.share(j, hosts[i])
		}
	}
	return may
}

// separate moves guests to free units where the time that both jobs save is more than the cost.
func (o *pitchpipePolicy) separate() {
	for o.pool.Free() > 0 {
		var best *Job
		most := 0.0
		for _, j := range o.pool.Running {
			h := prospects(j).partner
			if h == nil || j.order < h.order { // not the guest
				continue
			}
			if saved := (1-speed(j, h))*(o.left(j)+o.left(h)) - restart(j); saved > most && o.pool.find(j.Units) != nil {
				best, most = j, saved
			}
		}
		if best == nil {
			return
		}
		o.stop(best)
		o.pool.Start(best)
	}
}
