package vars

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
)

// refusal is an answer with a text instead of a body.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code int, text string) error { return &refusal{code: code, text: text} }

// invalid is what the server says of a request that it looked into: it shows the seam
// between the agent and the server.
func invalid(text string) error { return refuse(http.StatusBadRequest, "RPC Error:: 400,"+text) }

// conflict is an answer with what stands there instead.
type conflict struct{ is *api.Variable }

func (c *conflict) Error() string {
	return fmt.Sprintf("conflict with index %d of %s", c.is.ModifyIndex, c.is.Path)
}

const most = 64 << 10 // bytes of keys and values

var pathOK = regexp.MustCompile("^[a-zA-Z0-9-_~/]{1,128}$")

func checkPath(path string) error {
	if !pathOK.MatchString(path) {
		return invalid(fmt.Sprintf("invalid path %q", path))
	}
	return nil
}

func size(items api.VariableItems) int {
	n := 0
	for k, v := range items {
		n += len(k) + len(v)
	}
	return n
}

// set writes a variable. With cas it has to be as old as that index says, 0 = not there.
func (v *Vars) set(in api.Variable, cas *uint64) (*api.Variable, uint64, error) {
	if in.Lock != nil && (in.Lock.TTL != "" || in.Lock.LockDelay != "") {
		return nil, 0, invalid("RPC Error:: 400,variable should not contain lock definition")
	}
	switch {
	case in.Namespace == "*":
		return nil, 0, invalid(`can not target wildcard ("*")namespace`)
	case size(in.Items) > most:
		return nil, 0, invalid("variables are limited to 64KiB in total size")
	}
	if err := checkPath(in.Path); err != nil {
		return nil, 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.expire()
	old := v.entries[key{in.Namespace, in.Path}]
	if err := fits(old, in, cas); err != nil {
		return nil, 0, err
	}
	if held(old, in) {
		return nil, 0, &conflict{is: nothing(in)}
	}
	e := v.write(old, in)
	return e.copy(), e.ModifyIndex, nil
}

// fits checks the index that a writer expects.
func fits(old *entry, in api.Variable, cas *uint64) error {
	switch {
	case cas == nil || old == nil && *cas == 0 || old != nil && *cas == old.ModifyIndex:
		return nil
	case old == nil:
		return &conflict{is: nothing(in)}
	default:
		return &conflict{is: old.copy()}
	}
}

// held tells whether somebody else has the lock.
func held(old *entry, in api.Variable) bool {
	return old != nil && old.Lock != nil && (in.Lock == nil || in.Lock.ID != old.Lock.ID)
}

// nothing is what a conflict shows of what must not be seen or is not there.
func nothing(in api.Variable) *api.Variable {
	return &api.Variable{Namespace: in.Namespace, Path: in.Path}
}

// write puts a variable in the place of another. The caller holds the lock.
func (v *Vars) write(old *entry, in api.Variable) *entry {
	now := v.now().UnixNano()
	e := &entry{Variable: in}
	e.Items = maps.Clone(in.Items)
	e.ModifyIndex, e.ModifyTime = v.touch(), now
	e.CreateIndex, e.CreateTime = e.ModifyIndex, now
	e.Lock = nil
	if old != nil {
		e.CreateIndex, e.CreateTime = old.CreateIndex, old.CreateTime
		e.Lock, e.ttl, e.delay, e.renewed = old.Lock, old.ttl, old.delay, old.renewed
	}
	v.entries[key{in.Namespace, in.Path}] = e
	return e
}

func (v *Vars) remove(in api.Variable, cas *uint64) (uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.expire()
	k := key{in.Namespace, in.Path}
	old := v.entries[k]
	if err := fits(old, in, cas); err != nil {
		return 0, err
	}
	if old == nil {
		return v.index, nil
	}
	if held(old, in) {
		return 0, &conflict{is: nothing(in)}
	}
	delete(v.entries, k)
	return v.touch(), nil
}

// acquire writes a variable with a lock on it. What stood in it before is gone.
func (v *Vars) acquire(in api.Variable) (*api.Variable, uint64, error) {
	lock := api.VariableLock{}
	if in.Lock != nil {
		lock = *in.Lock
	}
	ttl, delay, err := durations(lock)
	if err != nil {
		return nil, 0, err
	}
	if size(in.Items) > most {
		return nil, 0, invalid("variables are limited to 64KiB in total size")
	}
	if err := checkPath(in.Path); err != nil {
		return nil, 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.expire()
	old := v.entries[key{in.Namespace, in.Path}]
	if held(old, in) {
		return nil, 0, &conflict{is: nothing(in)}
	}
	if lock.ID == "" {
		lock.ID = uuid()
	}
	lock.TTL, lock.LockDelay = ttl.String(), delay.String()
	again := old != nil && old.Lock != nil // by its holder
	e := v.write(old, in)
	e.Lock, e.ttl, e.delay = &lock, ttl, delay
	if !again {
		e.renewed = v.now()
	}
	return e.copy(), e.ModifyIndex, nil
}

func durations(lock api.VariableLock) (ttl, delay time.Duration, err error) {
	for _, d := range []struct {
		to   *time.Duration
		text string
	}{{&ttl, lock.TTL}, {&delay, lock.LockDelay}} {
		*d.to = 15 * time.Second
		if d.text == "" {
			continue
		}
		if *d.to, err = time.ParseDuration(d.text); err != nil {
			return 0, 0, refuse(http.StatusBadRequest, err.Error())
		}
		if *d.to == 0 {
			*d.to = 15 * time.Second
		}
	}
	var said []string
	if ttl < 0 || delay < 0 {
		said = append(said, "Lock delay and TTL must be positive")
	}
	if ttl < 10*time.Second || ttl > 24*time.Hour {
		said = append(said, "TTL must be between 10 seconds and 24 hours")
	}
	if len(said) == 0 {
		return ttl, delay, nil
	}
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%d error", len(said)))
	if len(said) > 1 {
		text.WriteString("s")
	}
	text.WriteString(" occurred:")
	for _, s := range said {
		text.WriteString("\n\t* " + s)
	}
	return 0, 0, invalid(text.String() + "\n\n")
}

// release gives a lock back. The variable's items stay.
func (v *Vars) release(in api.Variable) (*api.Variable, uint64, error) {
	switch {
	case in.Lock == nil || in.Lock.ID == "":
		return nil, 0, invalid("missing lock information")
	case in.Items != nil:
		return nil, 0, invalid("lock release operation doesn't take variable items")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.expire()
	e := v.entries[key{in.Namespace, in.Path}]
	switch {
	case e == nil:
		return nil, 0, refuse(http.StatusInternalServerError, "variable doesn't exist")
	case e.Lock == nil:
		return nil, 0, refuse(http.StatusInternalServerError, "variable doesn't hold a lock")
	case e.Lock.ID != in.Lock.ID:
		is := nothing(in)
		is.Lock = &api.VariableLock{}
		return nil, 0, &conflict{is: is}
	}
	e.Lock = nil
	e.ModifyIndex = v.touch()
	out := e.copy()
	out.Items = nil // what is returned is what was sent
	return out, e.ModifyIndex, nil
}

// renew gives a lock its time again.
func (v *Vars) renew(in api.Variable) (*api.Variable, error) {
	if in.Lock == nil || in.Lock.ID == "" {
		return nil, refuse(http.StatusBadRequest, "missing lock ID")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.expire()
	e := v.entries[key{in.Namespace, in.Path}]
	switch {
	case e == nil:
		return nil, refuse(http.StatusNotFound, "variable doesn't exist")
	case e.Lock == nil:
		return nil, refuse(http.StatusConflict, "variable doesn't hold a lock")
	case e.Lock.ID != in.Lock.ID || !v.now().Before(e.lost()):
		return nil, refuse(http.StatusConflict, "attempting to modify locked variable")
	}
	e.renewed = v.now()
	out := e.copy()
	out.Items = nil
	return out, nil
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
