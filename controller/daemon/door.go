package daemon

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"pitchpipe/controller/daemon/peer"
	"pitchpipe/exporter/api/peercred"
)

// door bounds the connections to the socket. One user may follow many jobs, keeps no other
// out, and all of them not the operator; who owns a job can always reach it.
func (d *Daemon) door(l net.Listener) *peercred.Listener {
	return d.bounded(l, peercred.Room{All: 512, Strangers: 448, Each: 64, Own: 4})
}

// scrapers bounds those to /metrics.
func (d *Daemon) scrapers(l net.Listener) *peercred.Listener {
	return d.bounded(peercred.Identify(l), peercred.Room{All: 64, Strangers: 48, Each: 16})
}

func (d *Daemon) bounded(l net.Listener, room peercred.Room) *peercred.Listener {
	return &peercred.Listener{
		Listener: l, Room: room, Owns: d.owners.has,
		Known: func(uid uint32) bool { return peer.Peer{UID: uid}.Privileged() },
		Full:  func(c peercred.Caller) { d.log.Debug("too many connections at a time", "peer", c.UID) },
	}
}

const (
	ownersAgain  = time.Second // how often the owners of jobs are looked up
	unknownAgain = time.Minute // of those who are in no directory
)

// owners are the users who own a job whose story goes on.
type owners struct {
	mu   sync.Mutex
	uids map[uint32]bool
}

// add takes the user for an owner until the next round ends.
func (o *owners) add(uid uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.uids == nil {
		o.uids = map[uint32]bool{}
	}
	o.uids[uid] = true
}

func (o *owners) has(uid uint32) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.uids[uid]
}

// follow looks up the users of those names until ctx ends. A directory service may take
// its time, so that this is never done for a connection. Each user is added as soon as he
// was found; who owns no job any more is left out when all names were looked up.
func (o *owners) follow(ctx context.Context, names func() []string) error {
	type found struct {
		uid uint32
		ok  bool
		at  time.Time
	}
	known := map[string]found{}
	for {
		now, uids := map[string]found{}, map[uint32]bool{}
		for _, name := range names() {
			f, ok := known[name]
			if !ok || !f.ok && time.Since(f.at) >= unknownAgain {
				uid, ok := peer.UID(ctx, name)
				f = found{uid, ok, time.Now()}
			}
			if now[name] = f; f.ok {
				uids[f.uid] = true
				o.add(f.uid)
			}
		}
		known = now
		o.mu.Lock()
		o.uids = uids
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(ownersAgain):
		}
	}
}

// ownersNow are the names of the users whose jobs are watched. A namespace of Nomad stands
// for itself and for those to whom the configuration gives it.
func (d *Daemon) ownersNow() []string {
	names := d.records.owners()
	if d.cfg.Driver == "nomad" {
		for _, p := range d.cfg.Nomad.People {
			if p.Name != "*" && slices.Contains(names, p.Namespace) {
				names = append(names, p.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
