package nomadserver

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/cluster"
)

const mostItems = 64 << 10 // bytes of keys and values of a variable

// invalid is what the server says about a request that it looked into: it shows the seam
// between the agent and the server.
func invalid(text string) error {
	return refuse(http.StatusBadRequest, "RPC Error:: 400,%s", text)
}

// conflict is an answer with what exists instead.
type conflict struct{ is api.Variable }

func (c *conflict) Error() string { return "conflict with " + c.is.Path }

// variables are those that templates read.
type variables struct{ s *Server }

func (v variables) Changed() <-chan struct{} { return v.s.store.Changed() }

func (v variables) Items(namespace, path string) (items map[string]string) {
	v.s.store.Read(func(t *cluster.Tables) {
		if found := t.Variable(namespace, path, time.Now()); found != nil {
			items = found.Items
		}
	})
	return items
}

// listed is a variable without its items; only management sees the locks of others.
func (c *call) listed(v *cluster.Variable) api.VariableMetadata {
	out := api.VariableMetadata{
		Namespace: v.Namespace, Path: v.Path, CreateIndex: v.CreateIndex, CreateTime: v.CreateTime, ModifyIndex: v.ModifyIndex, ModifyTime: v.ModifyTime,
	}
	if c.management() {
		out.Lock = v.Lock
	}
	return out
}

func listVariables(c *call, t *cluster.Tables) (any, uint64, error) {
	out := []api.VariableMetadata{}
	for _, v := range t.Variables(c.namespace(), c.query("prefix")) {
		if c.mayVariable(v.Namespace, v.Path, "list") {
			out = append(out, c.listed(v))
		}
	}
	return out, t.Touched(cluster.Variables), nil
}

func readVariable(c *call, t *cluster.Tables) (any, uint64, error) {
	if !c.mayVariable(c.namespace(), c.name, "read") {
		return nil, 0, denied()
	}
	v := t.Variable(c.namespace(), c.name, time.Now())
	if v == nil {
		return nil, 0, refuse(http.StatusNotFound, "variable not found")
	}
	out := v.Variable
	if !c.management() {
		out.Lock = nil
	}
	return out, v.ModifyIndex, nil
}

// unchanged returns the variable if its index is that of ?cas, 0 = it does not exist, and if
// no other holder has its lock.
func (c *call) unchanged(t *cluster.Tables, lock *api.VariableLock) (*cluster.Variable, error) {
	old := t.Variable(c.namespace(), c.name, time.Now())
	hidden := api.Variable{Namespace: c.namespace(), Path: c.name}
	if text := c.query("cas"); text != "" {
		cas, err := strconv.ParseUint(text, 10, 64)
		switch {
		case err != nil:
			return nil, refuse(http.StatusBadRequest, "can not parse cas: %v", err)
		case old == nil && cas != 0:
			return nil, &conflict{hidden}
		case old != nil && cas != old.ModifyIndex:
			is := old.Variable
			if !c.mayVariable(is.Namespace, is.Path, "read") {
				is.Items = nil
			}
			return nil, &conflict{is}
		}
	}
	if old != nil && old.Lock != nil && (lock == nil || lock.ID != old.Lock.ID) {
		return nil, &conflict{hidden}
	}
	return old, nil
}

// replyConflict answers with what exists where that is the error.
func (c *call) replyConflict(err error) error {
	if found, ok := errors.AsType[*conflict](err); ok {
		return c.send(http.StatusConflict, found.is, found.is.ModifyIndex)
	}
	return err
}

func writeVariable(c *call, in api.Variable) error {
	in.Path, in.Namespace = c.name, c.namespace()
	if !c.mayVariable(in.Namespace, in.Path, "write") {
		return denied()
	}
	size := 0
	for k, v := range in.Items {
		size += len(k) + len(v)
	}
	switch {
	case size > mostItems:
		return invalid("variables are limited to 64KiB in total size")
	case !regexp.MustCompile("^[a-zA-Z0-9-_~/]{1,128}$").MatchString(in.Path):
		return invalid(`invalid path "` + in.Path + `"`)
	}
	var out api.Variable
	write := c.set
	for name, operation := range map[string]func(*cluster.Tx, api.Variable) (api.Variable, error){
		"lock-acquire": c.acquire, "lock-renew": c.renew, "lock-release": c.release,
	} {
		if c.r.URL.Query().Has(name) {
			write = operation
		}
	}
	index, err := c.s.store.Write(func(tx *cluster.Tx) (err error) {
		out, err = write(tx, in)
		return err
	})
	if err != nil {
		return c.replyConflict(err)
	}
	return c.reply(out, index)
}

func (c *call) set(tx *cluster.Tx, in api.Variable) (api.Variable, error) {
	switch {
	case len(in.Items) == 0:
		return in, refuse(http.StatusBadRequest, "variable missing required Items object")
	case in.Lock != nil && in.Lock.TTL != "":
		return in, invalid("RPC Error:: 400,variable should not contain lock definition")
	}
	old, err := c.unchanged(tx.Tables, in.Lock)
	if err != nil {
		return in, err
	}
	v := &cluster.Variable{Variable: in}
	v.Lock = nil
	if old != nil {
		v.Lock, v.TTL, v.Delay, v.Renewed = old.Lock, old.TTL, old.Delay, old.Renewed
	}
	tx.PutVariable(v, time.Now())
	out := v.Variable
	if in.Lock == nil && !c.management() {
		out.Lock = nil
	}
	return out, nil
}

// acquire writes a variable with a lock on it; its items are replaced.
func (c *call) acquire(tx *cluster.Tx, in api.Variable) (api.Variable, error) {
	v := &cluster.Variable{Variable: in, TTL: 15 * time.Second, Delay: 15 * time.Second, Renewed: time.Now()}
	lock := api.VariableLock{}
	if in.Lock != nil {
		lock = *in.Lock
	}
	for _, d := range []struct {
		text string
		to   *time.Duration
	}{{lock.TTL, &v.TTL}, {lock.LockDelay, &v.Delay}} {
		if given, err := time.ParseDuration(d.text); err == nil && given != 0 {
			*d.to = given
		} else if err != nil && d.text != "" {
			return in, refuse(http.StatusBadRequest, "%v", err)
		}
	}
	if v.TTL < 10*time.Second || v.TTL > 24*time.Hour {
		return in, invalid("1 error occurred:\n\t* TTL must be between 10 seconds and 24 hours\n\n")
	}
	old, err := c.unchanged(tx.Tables, in.Lock)
	if err != nil {
		return in, err
	}
	if lock.ID == "" {
		lock.ID = uuid()
	}
	lock.TTL, lock.LockDelay = v.TTL.String(), v.Delay.String()
	v.Lock = &lock
	if old != nil && old.Lock != nil { // by its holder: this is not a renewal
		v.Renewed = old.Renewed
	}
	tx.PutVariable(v, time.Now())
	c.s.lapse(v)
	return v.Variable, nil
}

// lapse makes it a change that a lock's time is over, for those who wait for that.
func (s *Server) lapse(v *cluster.Variable) {
	s.after(time.Until(v.Free()), func() {
		s.write(func(tx *cluster.Tx) error {
			now := tx.Variable(v.Namespace, v.Path, time.Time{})
			if now == nil || now.Lock == nil || time.Now().Before(now.Free()) {
				return errNothing
			}
			free := *now
			free.Lock = nil
			tx.PutVariable(&free, time.Now())
			return nil
		})
	})
}

// held is a variable whose lock has the id that a request names.
func (c *call) held(tx *cluster.Tx, in api.Variable, absent, free int) (*cluster.Variable, error) {
	if in.Lock == nil || in.Lock.ID == "" {
		return nil, invalid("missing lock information")
	}
	v := tx.Variable(in.Namespace, in.Path, time.Now())
	switch {
	case v == nil:
		return nil, refuse(absent, "variable doesn't exist")
	case v.Lock == nil:
		return nil, refuse(free, "variable doesn't hold a lock")
	}
	return v, nil
}

// renew gives a lock its time again.
func (c *call) renew(tx *cluster.Tx, in api.Variable) (api.Variable, error) {
	v, err := c.held(tx, in, http.StatusNotFound, http.StatusConflict)
	if err != nil {
		return in, err
	}
	if v.Lock.ID != in.Lock.ID || !time.Now().Before(v.Lost()) {
		return in, refuse(http.StatusConflict, "attempting to modify locked variable")
	}
	tx.Renew(v, time.Now())
	c.s.lapse(tx.Variable(in.Namespace, in.Path, time.Now()))
	out := v.Variable
	out.Items = nil
	return out, nil
}

// release gives a lock back. The variable keeps its items.
func (c *call) release(tx *cluster.Tx, in api.Variable) (api.Variable, error) {
	if in.Items != nil {
		return in, invalid("lock release operation doesn't take variable items")
	}
	v, err := c.held(tx, in, http.StatusInternalServerError, http.StatusInternalServerError)
	if err != nil {
		return in, err
	}
	if v.Lock.ID != in.Lock.ID {
		return in, &conflict{api.Variable{Namespace: in.Namespace, Path: in.Path, Lock: &api.VariableLock{}}}
	}
	free := *v
	free.Lock = nil
	tx.PutVariable(&free, time.Now())
	out := free.Variable
	out.Items = nil // the answer is what was sent
	return out, nil
}

func deleteVariable(c *call) error {
	if !c.mayVariable(c.namespace(), c.name, "destroy") {
		return denied()
	}
	_, err := c.s.store.Write(func(tx *cluster.Tx) error {
		old, err := c.unchanged(tx.Tables, nil)
		switch {
		case err != nil:
			return err
		case old == nil:
			return errNothing
		}
		tx.DeleteVariable(c.namespace(), c.name)
		return nil
	})
	if err != nil && !errors.Is(err, errNothing) {
		return c.replyConflict(err)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
