package nomadserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"pitchpipe/test/nomadserver/cluster"
)

// route is a request that the server knows: METHOD PATH with one * for a name. PUT stands
// for POST too, and GET for HEAD.
type route struct {
	pattern string
	// right is what the token needs in the namespace of the request, any of several; a
	// right with a colon belongs to no namespace. "" means that serve asks itself.
	right string
	serve func(*call) error
}

// routes are tried in their order: a path with a longer suffix before one with none, since
// names of jobs may hold slashes.
func routes() []route {
	out := []route{
		{"GET /v1/jobs", "list-jobs", query(listJobs)},
		{"PUT /v1/jobs", "", body(registerJob)},
		{"PUT /v1/jobs/parse", "parse-job", body(parseJob)},
		{"PUT /v1/validate/job", "read-job", body(validateJob)},
		{"GET /v1/job/*/allocations", "read-job", query(jobAllocs)},
		{"GET /v1/job/*/evaluations", "read-job", query(jobEvals)},
		{"GET /v1/job/*/versions", "read-job", query(jobVersions)},
		{"GET /v1/job/*/submission", "read-job", query(jobSubmission)},
		{"GET /v1/job/*/summary", "read-job", query(jobSummary)},
		{"PUT /v1/job/*/plan", "", body(planJob)},
		{"PUT /v1/job/*/revert", "revert-job", body(revertJob)},
		{"PUT /v1/job/*/dispatch", "dispatch-job", body(dispatchJob)},
		{"PUT /v1/job/*/periodic/force", "dispatch-job", forcePeriodic},
		{"PUT /v1/job/*/tag", "tag-job-version", body(tagVersion)},
	}
	// A job of such a name cannot be read.
	for _, verb := range []string{"plan", "evaluate", "revert", "stable", "dispatch", "periodic/force"} {
		out = append(out, route{"GET /v1/job/*/" + verb, "", func(*call) error { return refuse(http.StatusMethodNotAllowed, "Invalid method") }})
	}
	for _, verb := range []string{"evaluate", "scale", "stable"} {
		out = append(out, route{"PUT /v1/job/*/" + verb, "", func(*call) error { return refuse(http.StatusNotImplemented, "not known here") }})
	}
	return append(out, []route{
		{"GET /v1/job/*", "read-job", query(readJob)},
		{"PUT /v1/job/*", "", body(registerJob)},
		{"DELETE /v1/job/*", "deregister-job", deregisterJob},
		{"GET /v1/allocations", "read-job", query(listAllocs)},
		{"PUT /v1/allocation/*/stop", "", stopAlloc},
		{"GET /v1/allocation/*", "", query(readAlloc)},
		{"GET /v1/evaluation/*", "read-job", query(readEval)},
		{"PUT /v1/client/allocation/*/restart", "", body(restartAlloc)},
		{"PUT /v1/client/allocation/*/signal", "", body(signalAlloc)},
		{"GET /v1/client/fs/logs/*", "", allocLogs},
		{"GET /v1/client/fs/ls/*", "", allocList},
		{"GET /v1/client/fs/stat/*", "", allocStat},
		{"GET /v1/client/fs/cat/*", "", allocFile},
		{"GET /v1/client/fs/readat/*", "", allocFile},
		{"GET /v1/nodes", "node:read", query(listNodes)},
		{"GET /v1/node/*", "node:read", query(readNode)},
		{"PUT /v1/namespace", "operator:write", body(writeNamespace)},
		{"GET /v1/vars", "", query(listVariables)},
		{"GET /v1/var/*", "", query(readVariable)},
		{"PUT /v1/var/*", "", body(writeVariable)},
		{"DELETE /v1/var/*", "", deleteVariable},
		{"PUT /v1/acl/bootstrap", "", governed(bootstrap)},
		{"PUT /v1/acl/policy/*", "acl:write", governed(body(writePolicy))},
		{"PUT /v1/acl/token", "acl:write", governed(body(writeToken))},
	}...)
}

// query answers with a read of the state, at once or when it has changed.
func query(read func(*call, *cluster.Tables) (any, uint64, error)) func(*call) error {
	return func(c *call) error { return c.watch(read) }
}

// body reads the request's body for serve; an empty one is a zero value.
func body[T any](serve func(*call, T) error) func(*call) error {
	return func(c *call) error {
		var in T
		if err := json.NewDecoder(c.r.Body).Decode(&in); err != nil && !errors.Is(err, io.EOF) {
			return refuse(http.StatusBadRequest, "%v", err)
		}
		return serve(c, in)
	}
}

// fits reports whether the request is of the route, and the name in its path.
func (r route) fits(req *http.Request) (name string, ok bool) {
	method := map[string]string{http.MethodPost: http.MethodPut, http.MethodHead: http.MethodGet}[req.Method]
	if method == "" {
		method = req.Method
	}
	prefix, suffix, named := strings.Cut(r.pattern, "*")
	text := method + " " + req.URL.Path
	if !named {
		return "", text == prefix
	}
	name, ok = strings.CutPrefix(text, prefix)
	if ok {
		name, ok = strings.CutSuffix(name, suffix)
	}
	return name, ok && name != ""
}

// handler serves the API.
func (s *Server) handler() http.Handler {
	routes := routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{s: s, w: w, r: r}
		for _, route := range routes {
			name, ok := route.fits(r)
			if !ok {
				continue
			}
			c.name = name
			// Of all namespaces a list shows what the token may read.
			if route.right != "" && c.namespace() != "*" && !c.may(c.namespace(), route.right) {
				c.answer(denied())
				return
			}
			c.answer(route.serve(c))
			return
		}
		c.answer(refuse(http.StatusNotFound, "Invalid URL path"))
	})
}

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
	s    *Server
	w    http.ResponseWriter
	r    *http.Request
	name string // of the job, allocation, variable, ... in the path
}

func (c *call) query(name string) string { return c.r.URL.Query().Get(name) }

func (c *call) namespace() string {
	if ns := c.query("namespace"); ns != "" {
		return ns
	}
	return "default"
}

func (c *call) truth(name string) bool {
	v, err := strconv.ParseBool(c.query(name))
	return err == nil && v
}

// id names the job of the request.
func (c *call) id() cluster.ID { return cluster.ID{Namespace: c.namespace(), Job: c.name} }

// reply sends a body as JSON.
func (c *call) reply(body any, index uint64) error { return c.send(http.StatusOK, body, index) }

func (c *call) send(code int, body any, index uint64) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Nomad-Index", strconv.FormatUint(index, 10))
	h.Set("X-Nomad-KnownLeader", "true")
	h.Set("X-Nomad-LastContact", "0")
	c.w.WriteHeader(code)
	_, _ = c.w.Write(text) // the client is gone otherwise
	return nil
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
	_, _ = io.WriteString(c.w, err.Error()) // as above
}

// change runs a transaction and replies with what it wrote down.
func (c *call) change(body any, f func(*cluster.Tx) error) error {
	index, err := c.s.store.Write(f)
	if err != nil && !errors.Is(err, errNothing) {
		return err
	}
	return c.reply(body, index)
}

// The bounds of how long a query waits.
const (
	waitDefault = 5 * time.Minute
	waitMost    = 10 * time.Minute
	waitSpread  = 16 // a sixteenth more at most, by chance
)

// watch answers a query: at once, or where the request names an index, once the answer has
// a higher one or its time is over.
func (c *call) watch(read func(*call, *cluster.Tables) (body any, index uint64, err error)) error {
	wait, least := waitDefault, uint64(0)
	var err error
	if v := c.query("wait"); v != "" {
		if wait, err = time.ParseDuration(v); err != nil {
			return refuse(http.StatusBadRequest, "Invalid wait time")
		}
	}
	if v := c.query("index"); v != "" {
		if least, err = strconv.ParseUint(v, 10, 64); err != nil {
			return refuse(http.StatusBadRequest, "Invalid index")
		}
	}
	if wait <= 0 {
		wait = waitDefault
	}
	wait = min(wait, waitMost)
	deadline := time.NewTimer(wait + rand.N(wait/waitSpread+1)) //nolint:gosec // a spread
	defer deadline.Stop()
	for over := false; ; {
		changed := c.s.store.Changed()
		var body any
		var index uint64
		c.s.store.Read(func(t *cluster.Tables) { body, index, err = read(c, t) })
		if err != nil {
			return err
		}
		if least == 0 || index > least || over {
			return c.reply(body, index)
		}
		select {
		case <-changed:
		case <-deadline.C:
			over = true
		case <-c.r.Context().Done():
			return nil
		}
	}
}
