package server

import (
	"net"
	"sync"
)

// bounded is a listener with so many connections at a time; further ones wait in the
// kernel's queue.
type bounded struct {
	net.Listener
	room   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newBounded(l net.Listener, most int) *bounded {
	return &bounded{Listener: l, room: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.room <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.room
		return nil, err //nolint:wrapcheck // http.Server looks at what kind it is
	}
	return &counted{Conn: c, leave: func() { <-b.room }}, nil
}

// Close implements net.Listener.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// counted is a connection that gives its room back once.
type counted struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.once.Do(c.leave)
	return c.Conn.Close()
}
