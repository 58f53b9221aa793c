package benchnomad

import (
	"io"
	"sync/atomic"
)

// counted is a body of which the bytes that were read are counted.
type counted struct {
	io.ReadCloser

	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}
