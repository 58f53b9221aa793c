package nomadserver

import (
	"net/http"
	"strings"
)

// route is one way to ask.
type route struct {
	methods string // "GET", or "PUT" for PUT and POST
	// prefix and suffix enclose a name; without a name between them prefix is the path.
	prefix, suffix string
	named          bool
	serve          func(*call) error
}

func (r route) fits(req *http.Request) (name string, ok bool) {
	method := req.Method
	switch method {
	case http.MethodPost:
		method = http.MethodPut
	case http.MethodHead:
		method = http.MethodGet
	}
	if method != r.methods {
		return "", false
	}
	path := req.URL.Path
	if !r.named {
		return "", path == r.prefix
	}
	name, ok = strings.CutPrefix(path, r.prefix)
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, r.suffix)
	return name, ok && name != ""
}

// routes are tried in their order: a path with a longer suffix before one with none,
// since names of jobs may hold slashes.
func (s *Server) routes() []route {
	const get, put, del = "GET", "PUT", "DELETE"
	job := func(method, suffix string, serve func(*call) error) route {
		return route{methods: method, prefix: "/v1/job/", suffix: suffix, named: true, serve: serve}
	}
	named := func(method, prefix, suffix string, serve func(*call) error) route {
		return route{methods: method, prefix: prefix, suffix: suffix, named: true, serve: serve}
	}
	plain := func(method, path string, serve func(*call) error) route {
		return route{methods: method, prefix: path, serve: serve}
	}
	return []route{
		plain(get, "/v1/jobs", listJobs), plain(put, "/v1/jobs", registerJob), plain(put, "/v1/jobs/parse", parseJob),
		plain(put, "/v1/validate/job", validateJob),
		job(get, "/allocations", jobAllocs), job(get, "/evaluations", jobEvals), job(get, "/versions", jobVersions),
		job(get, "/submission", jobSubmission), job(get, "/summary", jobSummary), job(get, "/scale", scaleStatus),
		job(get, "/deployments", noDeployments), job(get, "/deployment", noDeployment),
		job(put, "/plan", planJob), job(put, "/evaluate", evaluateJob), job(put, "/revert", revertJob),
		job(put, "/stable", stableJob), job(put, "/scale", scaleJob), job(put, "/dispatch", dispatchJob),
		job(put, "/periodic/force", forcePeriodic), job(put, "/tag", tagVersion), job(del, "/tag", untagVersion),
		// A job of such a name cannot be read.
		job(get, "/plan", wrongMethod), job(get, "/evaluate", wrongMethod), job(get, "/revert", wrongMethod),
		job(get, "/stable", wrongMethod), job(get, "/dispatch", wrongMethod), job(get, "/periodic/force", wrongMethod),
		job(get, "", readJob), job(put, "", registerJob), job(del, "", deregisterJob),
		plain(get, "/v1/allocations", listAllocs), named(put, "/v1/allocation/", "/stop", stopAlloc),
		named(get, "/v1/allocation/", "", readAlloc),
		plain(get, "/v1/evaluations", listEvals), named(get, "/v1/evaluation/", "/allocations", evalAllocs),
		named(get, "/v1/evaluation/", "", readEval),
		plain(get, "/v1/scaling/policies", listPolicies), named(get, "/v1/scaling/policy/", "", readPolicy),
		named(put, "/v1/client/allocation/", "/restart", restartAlloc), named(put, "/v1/client/allocation/", "/signal", signalAlloc),
		named(get, "/v1/client/allocation/", "/stats", allocStats),
		named(get, "/v1/client/fs/logs/", "", allocLogs), named(get, "/v1/client/fs/ls/", "", allocList),
		named(get, "/v1/client/fs/stat/", "", allocStat), named(get, "/v1/client/fs/cat/", "", allocCat),
		named(get, "/v1/client/fs/readat/", "", allocReadAt), plain(get, "/v1/client/stats", nodeStats),
		plain(get, "/v1/nodes", listNodes), named(get, "/v1/node/", "/allocations", nodeAllocs), named(get, "/v1/node/", "", readNode),
		plain(get, "/v1/agent/self", agentSelf), plain(get, "/v1/agent/health", agentHealth),
		plain(get, "/v1/status/leader", statusLeader), plain(get, "/v1/status/peers", statusPeers), plain(get, "/v1/regions", listRegions),
		plain(get, "/v1/operator/scheduler/configuration", readConfig), plain(put, "/v1/operator/scheduler/configuration", writeConfig),
		plain(get, "/v1/namespaces", listNamespaces), named(get, "/v1/namespace/", "", readNamespace),
		plain(put, "/v1/namespace", writeNamespace), named(put, "/v1/namespace/", "", writeNamespace),
		named(del, "/v1/namespace/", "", deleteNamespace),
		plain(get, "/v1/event/stream", streamEvents),
	}
}

func wrongMethod(*call) error { return refuse(http.StatusMethodNotAllowed, "Invalid method") }

// handler serves the API.
func (s *Server) handler() http.Handler {
	routes := s.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/vars" || strings.HasPrefix(r.URL.Path, "/v1/var/"):
			s.ports.variables.ServeHTTP(w, r)
			return
		case strings.HasPrefix(r.URL.Path, "/v1/acl/"):
			s.ports.authority.ServeHTTP(w, r)
			return
		}
		c := &call{s: s, w: w, r: r}
		for _, route := range routes {
			if name, ok := route.fits(r); ok {
				c.name = name
				c.answer(route.serve(c))
				return
			}
		}
		c.answer(refuse(http.StatusNotFound, "Invalid URL path"))
	})
}
