package fetch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// store answers requests for blocks: eight bytes with the number of one, little-endian,
// and back comes the block after a delay.
type store struct {
	blocks   [][]byte
	delay    time.Duration
	listener net.Listener
	mu       sync.Mutex
	open     map[net.Conn]bool
	served   sync.WaitGroup
}

func serve(blocks [][]byte, delay time.Duration) (*store, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // listening on the loopback waits for nothing
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &store{blocks: blocks, delay: delay, listener: l, open: map[net.Conn]bool{}}
	s.served.Go(s.accept)
	return s, nil
}

func (s *store) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // it was closed
		}
		s.mu.Lock()
		s.open[c] = true
		s.mu.Unlock()
		s.served.Go(func() {
			s.answer(c)
			s.mu.Lock()
			delete(s.open, c)
			s.mu.Unlock()
		})
	}
}

func (s *store) answer(c net.Conn) {
	defer c.Close() //nolint:errcheck // whoever asked sees that it ended
	request := make([]byte, 8)
	for {
		if _, err := io.ReadFull(c, request); err != nil {
			return
		}
		time.Sleep(s.delay)
		block := s.blocks[binary.LittleEndian.Uint64(request)%uint64(len(s.blocks))]
		if _, err := c.Write(block); err != nil {
			return
		}
	}
}

func (s *store) dial() (net.Conn, error) {
	return net.Dial("tcp", s.listener.Addr().String()) //nolint:noctx // the loopback answers at once
}

// close ends the store; it returns when nobody is served any more.
func (s *store) close() error {
	err := s.listener.Close()
	s.mu.Lock()
	for c := range s.open {
		err = errors.Join(err, c.Close())
	}
	s.mu.Unlock()
	s.served.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
