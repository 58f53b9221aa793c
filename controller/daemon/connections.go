package daemon

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"pitchpipe/controller/daemon/peer"
	"pitchpipe/driver"
	"pitchpipe/exporter/api/peercred"
)

// limitSocket bounds the connections to the socket, so that users cannot lock out each
// other, the operator, or the owner of a job.
func (d *Daemon) limitSocket(l net.Listener) *peercred.Listener {
	return d.limit(l, peercred.Room{All: 512, Strangers: 448, Each: 64, Own: 4})
}

func (d *Daemon) limitMetrics(l net.Listener) *peercred.Listener {
	return d.limit(l, peercred.Room{All: 64, Strangers: 48, Each: 16})
}

func (d *Daemon) limit(l net.Listener, room peercred.Room) *peercred.Listener {
	return &peercred.Listener{
		Listener: l, Room: room, Owns: d.owners.has,
		Known: func(uid uint32) bool { return peer.Peer{UID: uid}.Privileged() },
		Full:  func(c peercred.Caller) { d.log.Debug("too many connections at a time", "peer", c.UID) },
	}
}

const (
	ownersAgain  = time.Second // pause between two look-ups of the owners
	unknownAgain = time.Minute // of names without a user
)

type owners struct {
	mu   sync.Mutex
	uids map[uint32]bool
}

// add counts the user as an owner until the next round ends.
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

// follow looks up the users of these names until ctx ends. A directory service may be slow,
// so that no connection waits for it. A user is added when he is found, and removed when a
// round without him ends.
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
		if driver.Pause(ctx, ownersAgain) != nil {
			return nil
		}
	}
}

// ownersNow are the owners of the live jobs. A namespace of Nomad counts for itself and for
// the users that the configuration gives it to.
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
