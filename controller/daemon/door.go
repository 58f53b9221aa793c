package daemon

import (
	"net"

	"pitchpipe/controller/daemon/peer"
	"pitchpipe/driver/door"
)

// room is how many connections to the socket are served at a time. One user may follow
// many jobs; no one of them keeps the others out, and all of them not its operator.
func room() door.Room { return door.Room{All: 512, Strangers: 448, Each: 64} }

// door lets so many connections in, and closes others at once.
func (d *Daemon) door(l net.Listener) net.Listener {
	return &door.Listener{
		Listener: l, Room: room(),
		Known: func(uid uint32) bool { return peer.Peer{UID: uid}.Privileged() },
		Full:  func(uid uint32) { d.log.Debug("too many connections at a time", "peer", uid) },
	}
}
