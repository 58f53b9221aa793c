package broker

import (
	"net"
	"slices"
	"sync"
)

// How many connections are served at a time. What is above that is closed at once.
const (
	maxConnections = 64
	maxStrangers   = 32 // of them from others than controllers, so that nobody keeps those out
	maxOfOne       = 8  // from one uid that is not a controller
)

// gate is a listener that keeps the number of connections down.
type gate struct {
	net.Listener

	known func(uid uint32) bool // a controller
	full  func(uid uint32)      // told of each connection that is closed at once

	mu        sync.Mutex
	all       int
	strangers map[uint32]int
}

// guest is a connection whose user was asked for.
type guest struct {
	net.Conn

	uid   uint32
	err   error // why nobody knows who it is
	leave func()
}

// Accept returns the next connection that there is room for.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, unknown := uidOf(conn)
		if unknown != nil {
			uid = noUID
		}
		stranger := unknown != nil || !g.known(uid)
		if !g.enter(uid, stranger) {
			_ = conn.Close() // nobody there has asked anything yet
			g.full(uid)
			continue
		}
		return &guest{Conn: conn, uid: uid, err: unknown, leave: sync.OnceFunc(func() { g.left(uid, stranger) })}, nil
	}
}

func (g *gate) enter(uid uint32, stranger bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all >= maxConnections {
		return false
	}
	if stranger {
		sum := 0
		for _, n := range g.strangers {
			sum += n
		}
		if sum >= maxStrangers || g.strangers[uid] >= maxOfOne {
			return false
		}
		g.strangers[uid]++
	}
	g.all++
	return true
}

func (g *gate) left(uid uint32, stranger bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if !stranger {
		return
	}
	if g.strangers[uid]--; g.strangers[uid] == 0 {
		delete(g.strangers, uid)
	}
}

// Close makes room for another.
func (c *guest) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite lets an answer arrive although what was asked is not read to its end.
func (c *guest) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// controller tells whether requests of this user are answered.
func (s *Server) controller(uid uint32) bool {
	return uid == 0 || slices.Contains(s.cfg.Controllers, uid)
}
