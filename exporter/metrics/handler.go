package metrics

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/collector/gpu"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// Config is what a page is made of.
type Config struct {
	Version  string
	Node     func() api.Node // as it is now: a source may come or go
	Store    *window.Store
	Snapshot func() *sampler.Snapshot
	GPUs     func() *gpu.Snapshot   // nil = there are none
	Others   []prometheus.Collector // besides it, such as those of the process and the Go runtime
}

// view is what a caller may see of jobs.
type view struct {
	all bool   // the jobs of all users
	uid uint32 // those of this one
}

func (v view) sees(uid uint32) bool { return v.all || uid == v.uid }

type viewKey struct{}

// For returns the context of a request whose caller sees the jobs of that user alone. Without
// it the caller sees all jobs.
func For(ctx context.Context, uid uint32) context.Context {
	return context.WithValue(ctx, viewKey{}, view{uid: uid})
}

// maxPages is how many pages are kept until the next sample; those of further users are
// encoded for each request.
const maxPages = 16

// pages serves the last sample from memory.
type pages struct {
	cfg    Config
	others prometheus.Gatherer

	mu       sync.Mutex
	families []*family // in the order of the table
	names    map[string]*family
	columns  []column
	of       *sampler.Snapshot // the sample that the rest is of
	now      []window.Latest
	tail     []byte // of the process and the runtime
	users    map[uint32]bool
	kept     map[view]*page

	zipping sync.Mutex
	zip     *gzip.Writer // whose tables are most of the cost of a page
}

type page struct {
	plain []byte
	once  sync.Once
	zip   []byte
}

// Handler serves the newest sample. The others must not be of one name.
func Handler(cfg Config) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(cfg.Others...)
	s := &pages{cfg: cfg, others: r, names: map[string]*family{}}
	for _, m := range Table() {
		head := "# HELP " + m.Name + " " + strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(m.Help) + "\n# TYPE " + m.Name + " " + m.Kind + "\n"
		f := &family{Metric: m, head: []byte(head)}
		s.families, s.names[m.Name] = append(s.families, f), f
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, limited := r.Context().Value(viewKey{}).(view)
	v.all = !limited
	p := s.page(v)
	h := w.Header()
	h.Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	h.Add("Vary", "Accept-Encoding")
	body := p.plain
	if a := strings.ReplaceAll(r.Header.Get("Accept-Encoding"), " ", ""); strings.Contains(a, "gzip") && !strings.Contains(a, "gzip;q=0") {
		h.Set("Content-Encoding", "gzip")
		body = s.zipped(p)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the caller may have left
}

// page returns the page of the last sample. The first request makes it.
func (s *pages) page(v view) *page {
	snap := s.cfg.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if snap != s.of || s.kept == nil {
		s.of, s.now, s.tail = snap, s.cfg.Store.Latest(), s.itself()
		s.learn(s.cfg.Store.Columns())
		s.kept, s.users = map[view]*page{}, map[uint32]bool{}
		for _, l := range s.now {
			s.users[l.Job.UID] = true
		}
		for _, u := range snap.Users {
			s.users[u.UID] = true
		}
	}
	if !v.all && !s.users[v.uid] {
		v.uid = peercred.Nobody // one page for all who see no job
	}
	if p := s.kept[v]; p != nil {
		return p
	}
	p := &page{plain: s.encode(snap, s.now, v)}
	if len(s.kept) < maxPages {
		s.kept[v] = p
	}
	return p
}

// itself returns the metrics of the process itself, without those that cannot be read: the
// jobs matter more.
func (s *pages) itself() []byte {
	var out bytes.Buffer
	families, _ := s.others.Gather() // with an error come those that could be had
	for _, f := range families {
		_, _ = expfmt.MetricFamilyToText(&out, f) // into memory
	}
	return out.Bytes()
}

func (s *pages) zipped(p *page) []byte {
	p.once.Do(func() {
		s.zipping.Lock()
		defer s.zipping.Unlock()
		var b bytes.Buffer
		if s.zip == nil {
			s.zip, _ = gzip.NewWriterLevel(&b, gzip.BestSpeed) // which is a level
		} else {
			s.zip.Reset(&b)
		}
		_, _ = s.zip.Write(p.plain) // memory takes everything
		_ = s.zip.Close()
		p.zip = b.Bytes()
	})
	return p.zip
}
