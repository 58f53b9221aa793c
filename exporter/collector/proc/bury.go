package proc

// bury moves what the processes that are gone had counted to the totals, or leaves it
// to the parent that waited for them.
func (r *reader) bury() {
	for pid, p := range r.alive {
		if p.seen {
			continue
		}
		if parent := r.alive[p.stat.Parent]; parent != nil && parent.seen {
			p.io = IO{} // the kernel added it to the parent that waited
			parent.heir(p.use())
			p.stat.Own, p.stat.Children, p.waiting = Use{}, Use{}, nil
		}
		r.retire(p)
		delete(r.alive, pid)
	}
}

func (r *reader) retire(p *process) {
	g := &r.gone
	g.use = g.use.plus(p.use())
	g.io = g.io.plus(p.io)
	s := p.switches()
	g.switches.Voluntary += s.Voluntary
	g.switches.Involuntary += s.Involuntary
}

// use is what a process and those that it answers for took: the children for which it
// waited, and those for which it has yet to wait.
func (p *process) use() Use {
	u := p.stat.Own.plus(p.stat.Children)
	for _, w := range p.waiting {
		u = u.plus(w)
	}
	return u
}

// wait notes that the kernel's count of the children is now so many ticks: those that
// were waited for are in it.
func (p *process) wait(children uint64) {
	p.waited = children - min(p.stat.Children.ticks(), children)
	rest := p.waiting[:0]
	for _, w := range p.waiting {
		if !p.covers(w) {
			rest = append(rest, w)
		}
	}
	p.waiting = rest
}

// heir takes over what a child took that has ended. A parent that doesn't care for its
// children never waits, and the kernel drops what they took.
func (p *process) heir(u Use) {
	if !p.covers(u) {
		p.waiting = append(p.waiting, u)
	}
}

// covers reports whether what was waited for has room for a child, and takes that room.
// The kernel rounds the sum and not each of its parts, so that two ticks may be missing.
func (p *process) covers(u Use) bool {
	if p.waited+2 < u.ticks() || p.waited == 0 && u.ticks() > 0 {
		return false
	}
	p.waited -= min(p.waited, u.ticks())
	return true
}
