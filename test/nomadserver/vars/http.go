package vars

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
)

// The bounds of how long a query waits.
const (
	waitDefault = 5 * time.Minute
	waitMost    = 10 * time.Minute
	waitSpread  = 16 // a sixteenth more at most, by chance
)

// ServeHTTP answers /v1/vars and /v1/var/PATH.
func (v *Vars) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{v: v, r: r, query: r.URL.Query(), namespace: r.URL.Query().Get("namespace"), status: http.StatusOK}
	if c.namespace == "" {
		c.namespace = api.DefaultNamespace
	}
	body, err := c.serve()
	var refused *refusal
	var stands *conflict
	switch {
	case errors.As(err, &stands):
		c.status, c.index = http.StatusConflict, stands.is.ModifyIndex
		body = plain(stands.is)
		if !c.may(stands.is.Namespace, stands.is.Path, "read") {
			hidden := *stands.is
			hidden.Items = nil
			body = plain(&hidden)
		}
	case errors.As(err, &refused):
		w.WriteHeader(refused.code)
		_, _ = w.Write([]byte(refused.text)) // the client is gone otherwise
		return
	case err != nil:
		return // the client is gone
	}
	w.Header().Set("X-Nomad-Index", strconv.FormatUint(c.index, 10))
	if r.Method == http.MethodGet {
		w.Header().Set("X-Nomad-KnownLeader", "true")
		w.Header().Set("X-Nomad-LastContact", "0")
	}
	if c.next != "" {
		w.Header().Set("X-Nomad-NextToken", c.next)
	}
	if body == nil {
		w.WriteHeader(c.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(c.status)
	_ = json.NewEncoder(w).Encode(body) // as above
}

// call is one request.
type call struct {
	v         *Vars
	r         *http.Request
	query     url.Values
	namespace string
	path      string

	status int
	index  uint64
	next   string
}

func (c *call) token() string {
	if t := c.r.Header.Get("X-Nomad-Token"); t != "" {
		return t
	}
	t, _ := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	return t
}

func (c *call) may(namespace, path, capability string) bool {
	return c.v.hooks.Allows == nil || c.v.hooks.Allows(c.token(), namespace, path, capability)
}

func (c *call) management() bool {
	return c.v.hooks.Management == nil || c.v.hooks.Management(c.token())
}

func (c *call) need(capability string) error {
	if !c.may(c.namespace, c.path, capability) {
		return refuse(http.StatusForbidden, "Permission denied")
	}
	return nil
}

func (c *call) serve() (any, error) {
	if c.r.URL.Path == "/v1/vars" {
		if c.r.Method != http.MethodGet {
			return nil, refuse(http.StatusMethodNotAllowed, "Invalid method")
		}
		return c.list()
	}
	path, ok := strings.CutPrefix(c.r.URL.Path, "/v1/var/")
	if !ok || path == "" {
		return nil, refuse(http.StatusBadRequest, "missing variable path")
	}
	c.path = path
	switch c.r.Method {
	case http.MethodGet:
		return c.read()
	case http.MethodPut, http.MethodPost:
		return c.put()
	case http.MethodDelete:
		return c.delete()
	default:
		return nil, refuse(http.StatusBadRequest, "Invalid method")
	}
}

// cas is the index that the writer expects, nil where he expects none.
func (c *call) cas() (*uint64, error) {
	text := c.query.Get("cas")
	if text == "" {
		return nil, nil //nolint:nilnil // none
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, fmt.Sprintf("can not parse cas: %v", err))
	}
	return &n, nil
}

func (c *call) put() (any, error) {
	var operations []string
	for _, o := range []string{"lock-acquire", "lock-release", "lock-renew"} {
		if c.query.Has(o) {
			operations = append(operations, o)
		}
	}
	switch {
	case len(operations) > 1:
		return nil, refuse(http.StatusBadRequest, "multiple lock operations")
	case len(operations) == 1 && c.query.Get("cas") != "":
		return nil, refuse(http.StatusBadRequest, "CAS can't be used with lock operations")
	}
	var in api.Variable
	if err := json.NewDecoder(c.r.Body).Decode(&in); err != nil {
		return nil, refuse(http.StatusBadRequest, err.Error())
	}
	if len(operations) == 0 && len(in.Items) == 0 {
		return nil, refuse(http.StatusBadRequest, "variable missing required Items object")
	}
	in.Path = c.path
	if in.Namespace == "" {
		in.Namespace = c.namespace
	}
	c.namespace = in.Namespace
	if err := c.need("write"); err != nil {
		return nil, err
	}
	cas, err := c.cas()
	if err != nil {
		return nil, err
	}
	var out *api.Variable
	operation := ""
	if len(operations) == 1 {
		operation = operations[0]
	}
	switch operation {
	case "":
		out, c.index, err = c.v.set(in, cas)
	case "lock-acquire":
		out, c.index, err = c.v.acquire(in)
	case "lock-release":
		out, c.index, err = c.v.release(in)
	default:
		if out, err = c.v.renew(in); err == nil {
			return metadata(out, true), nil
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if c.v.hooks.Changed != nil {
		c.v.hooks.Changed(*out, false, c.index)
	}
	owner := in.Lock != nil && out.Lock != nil && in.Lock.ID == out.Lock.ID || operation == "lock-acquire"
	if !owner && !c.management() {
		out.Lock = nil
	}
	return plain(out), nil
}

func (c *call) delete() (any, error) {
	if err := c.need("destroy"); err != nil {
		return nil, err
	}
	cas, err := c.cas()
	if err != nil {
		return nil, err
	}
	in := api.Variable{Namespace: c.namespace, Path: c.path}
	if c.index, err = c.v.remove(in, cas); err != nil {
		return nil, err
	}
	if c.v.hooks.Changed != nil {
		c.v.hooks.Changed(in, true, c.index)
	}
	c.status = http.StatusNoContent
	return nil, nil //nolint:nilnil // an empty answer
}

func (c *call) read() (any, error) {
	if err := c.need("read"); err != nil {
		return nil, err
	}
	var out *api.Variable
	err := c.watch(func() uint64 {
		if out = c.v.Get(c.namespace, c.path); out != nil {
			return out.ModifyIndex
		}
		return c.v.Index()
	})
	switch {
	case err != nil:
		return nil, err
	case out == nil:
		return nil, refuse(http.StatusNotFound, "variable not found")
	}
	if !c.management() {
		out.Lock = nil
	}
	return plain(out), nil
}

func (c *call) list() (any, error) {
	if c.query.Get("filter") != "" {
		return nil, refuse(http.StatusBadRequest, "filters of variables are not known here")
	}
	out := []any{}
	err := c.watch(func() uint64 {
		out, c.next = out[:0], ""
		most, err := strconv.Atoi(c.query.Get("per_page"))
		if err != nil {
			most = 0
		}
		for _, one := range c.v.List(c.namespace, c.query.Get("prefix")) {
			name := one.Namespace + "." + one.Path
			if name < c.query.Get("next_token") || !c.may(one.Namespace, one.Path, "list") {
				continue
			}
			if most > 0 && len(out) == most {
				c.next = name
				break
			}
			out = append(out, metadata(one, c.management()))
		}
		return c.v.Index()
	})
	return out, err
}

// watch asks until the index is beyond the one that the request knows, or the wait is
// over. The error is the request's end.
func (c *call) watch(ask func() uint64) error {
	known, err := strconv.ParseUint(c.query.Get("index"), 10, 64)
	if err != nil {
		known = 0
	}
	wait := waitDefault
	if text := c.query.Get("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil {
			return refuse(http.StatusBadRequest, "Invalid wait time")
		}
	}
	wait = min(wait, waitMost)
	wait += rand.N(wait/waitSpread + 1) //nolint:gosec // a spread
	ctx, cancel := context.WithTimeout(c.r.Context(), wait)
	defer cancel()
	for {
		c.v.mu.Lock()
		changed := c.v.changed
		free, locks := c.v.nextFree()
		now := c.v.now()
		c.v.mu.Unlock()
		c.index = ask()
		if known == 0 || c.index > known {
			return nil
		}
		var lapse <-chan time.Time
		if locks {
			lapse = time.After(max(free.Sub(now), time.Millisecond))
		}
		select {
		case <-changed:
		case <-lapse:
		case <-ctx.Done():
			return c.r.Context().Err()
		}
	}
}

// plain is a variable without the word Items where it has none.
func plain(v *api.Variable) any {
	out := metadata(v, true)
	if len(v.Items) > 0 {
		out["Items"] = v.Items
	}
	return out
}

func metadata(v *api.Variable, lock bool) map[string]any {
	out := map[string]any{
		"Namespace": v.Namespace, "Path": v.Path, "CreateIndex": v.CreateIndex, "CreateTime": v.CreateTime,
		"ModifyIndex": v.ModifyIndex, "ModifyTime": v.ModifyTime,
	}
	if lock && v.Lock != nil {
		out["Lock"] = v.Lock
	}
	return out
}
