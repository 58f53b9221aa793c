package nomadserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"pitchpipe/test/nomadserver/state"
)

// refusal is an answer with a text instead of a body.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

func denied() error { return refuse(http.StatusForbidden, "Permission denied") }

// call is one request.
type call struct {
	s *Server
	w http.ResponseWriter
	r *http.Request
	// name is what the path names: a job, an allocation, an evaluation.
	name string
}

// namespace is that of the request, "default" where it names none.
func (c *call) namespace() string {
	if ns := c.r.URL.Query().Get("namespace"); ns != "" {
		return ns
	}
	return "default"
}

func (c *call) query(name string) string { return c.r.URL.Query().Get(name) }

func (c *call) truth(name string) bool {
	v, err := strconv.ParseBool(c.query(name))
	return err == nil && v
}

func (c *call) token() string {
	if t := c.r.Header.Get("X-Nomad-Token"); t != "" {
		return t
	}
	t, _ := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	return t
}

// may tells whether the token has any of the capabilities.
func (c *call) may(namespace string, capabilities ...string) bool {
	if !c.s.opts.ACL {
		return true
	}
	for _, capability := range capabilities {
		if c.s.ports.authority.Allows(c.token(), namespace, capability) {
			return true
		}
	}
	return false
}

// need is an error where the token has none of the capabilities in the namespace of
// the request.
func (c *call) need(capabilities ...string) error {
	if !c.may(c.namespace(), capabilities...) {
		return denied()
	}
	return nil
}

// id names the job of the request.
func (c *call) id() state.ID { return state.ID{Namespace: c.namespace(), Job: c.name} }

// decode reads the body; an empty one leaves v as it is.
func (c *call) decode(v any) error {
	err := json.NewDecoder(c.r.Body).Decode(v)
	if err != nil && !errors.Is(err, io.EOF) {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	return nil
}

// reply sends a body as JSON.
func (c *call) reply(body any, index uint64) error {
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	setIndex(h, index)
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if _, err := c.w.Write(text); err != nil {
		c.s.opts.Logger.Debug("a client went away", "error", err)
	}
	return nil
}

func setIndex(h http.Header, index uint64) {
	h.Set("X-Nomad-Index", strconv.FormatUint(index, 10))
	h.Set("X-Nomad-KnownLeader", "true")
	h.Set("X-Nomad-LastContact", "0")
}

// answer sends what went wrong.
func (c *call) answer(err error) {
	if err == nil {
		return
	}
	code := http.StatusInternalServerError
	if r, ok := errors.AsType[*refusal](err); ok {
		code = r.code
	}
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.WriteHeader(code)
	if _, err := io.WriteString(c.w, err.Error()); err != nil {
		c.s.opts.Logger.Debug("a client went away", "error", err)
	}
}

// The bounds of how long a query waits.
const (
	waitDefault = 5 * time.Minute
	waitMost    = 10 * time.Minute
	waitSpread  = 16 // a sixteenth more at most, by chance
)
