package nomadserver

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"pitchpipe/test/nomadserver/state"
)

// read is one look at the state: what to answer and its index.
type read func(t *state.Tables) (body any, index uint64, err error)

// watch answers a query: at once, or where the request names an index once the answer
// has a higher one, or its time is over. keys are what the answer depends on.
func (c *call) watch(f read, keys ...string) error {
	least, wait, err := c.patience()
	if err != nil {
		return err
	}
	deadline := time.After(wait)
	for {
		changed := c.s.store.Changed()
		body, index, seen, err := c.look(f)
		if err != nil {
			return err
		}
		if index > least || least == 0 {
			return c.reply(body, index)
		}
		over := c.sleep(changed, deadline, seen, keys)
		if c.r.Context().Err() != nil {
			return nil
		}
		if over {
			body, index, _, err := c.look(f)
			if err != nil {
				return err
			}
			return c.reply(body, index)
		}
	}
}

func (c *call) look(f read) (body any, index, seen uint64, err error) {
	c.s.store.Read(func(t *state.Tables) {
		seen = t.Index()
		body, index, err = f(t)
	})
	return body, index, seen, err
}

// sleep waits until a key was touched after the index that was seen; true = the time
// was over before.
func (c *call) sleep(changed <-chan struct{}, deadline <-chan time.Time, seen uint64, keys []string) bool {
	for {
		select {
		case <-changed:
		case <-deadline:
			return true
		case <-c.r.Context().Done():
			return true
		}
		changed = c.s.store.Changed()
		moved := false
		c.s.store.Read(func(t *state.Tables) { moved = t.LastOf(keys...) > seen })
		if moved {
			return false
		}
	}
}

// patience reads index and wait. Nomad waits up to a sixteenth longer than asked.
func (c *call) patience() (least uint64, wait time.Duration, err error) {
	if v := c.query("wait"); v != "" {
		if wait, err = time.ParseDuration(v); err != nil {
			return 0, 0, refuse(http.StatusBadRequest, "Invalid wait time")
		}
	}
	if v := c.query("index"); v != "" {
		if least, err = strconv.ParseUint(v, 10, 64); err != nil {
			return 0, 0, refuse(http.StatusBadRequest, "Invalid index")
		}
	}
	if wait <= 0 {
		wait = waitDefault
	}
	wait = min(wait, waitMost)
	if extra := wait / waitSpread; extra > 0 {
		wait += rand.N(extra)
	}
	return least, wait, nil
}
