package broker

import (
	"net"
	"slices"

	"pitchpipe/driver/door"
)

// room is how many connections are served at a time. What is above that is closed at once.
func room() door.Room {
	return door.Room{
		All:       64,
		Strangers: 32, // others than controllers
		Each:      8,
	}
}

// gate lets few of each user in.
func (s *Server) gate(l net.Listener) net.Listener {
	return &door.Listener{
		Listener: l, Room: room(), Known: s.controller,
		Full: func(uid uint32) { s.turnedAway(uid, "connect", "too many connections at a time") },
	}
}

// controller tells whether requests of this user are answered.
func (s *Server) controller(uid uint32) bool {
	return uid == 0 || slices.Contains(s.cfg.Controllers, uid)
}
