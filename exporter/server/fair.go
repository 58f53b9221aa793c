package server

import (
	"errors"
	"net"
	"sync"
)

const (
	// userConnections is how many connections one user may have at a time, all of whose
	// jobs on the node share them; root and the readers may have any number.
	userConnections = 128
	// allConnections is how many all users together may have.
	allConnections = 512
)

var errCrowd = errors.New("too many connections at a time")

// fair is a listener on which no user can take the room of the others: what is above his
// share is closed at once.
type fair struct {
	net.Listener
	identify  func(net.Conn) peerResult
	refused   *complaints
	each, all int // connections

	mu    sync.Mutex
	open  map[uint32]int
	total int
}

func (s *Server) fair(l net.Listener, identify func(net.Conn) peerResult) *fair {
	return &fair{
		Listener: l, identify: identify, refused: &complaints{log: s.log}, each: userConnections, all: allConnections,
		open: map[uint32]int{},
	}
}

// Accept implements net.Listener.
func (f *fair) Accept() (net.Conn, error) {
	for {
		c, err := f.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // http.Server looks at what kind it is
		}
		who := f.identify(c)
		if leave, ok := f.enter(who.peer); ok {
			return &known{counted: counted{Conn: c, leave: leave}, who: who}, nil
		}
		_ = c.Close()
		f.refused.add(who.peer.String(), errCrowd)
	}
}

// enter counts a connection in, where there is room for it. Who is not known shares the
// room of one user.
func (f *fair) enter(p peer) (leave func(), ok bool) {
	if p.all {
		return func() {}, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[p.uid] >= f.each || f.total >= f.all {
		return nil, false
	}
	f.open[p.uid]++
	f.total++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.total--
		if f.open[p.uid]--; f.open[p.uid] == 0 {
			delete(f.open, p.uid)
		}
	}, true
}

// known is a connection of which is known who opened it.
type known struct {
	counted
	who peerResult
}
