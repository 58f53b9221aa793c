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

	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// View is what a caller may see of jobs. The zero one sees none.
type View struct {
	All  bool // those of everybody
	Some bool // those of the user UID
	UID  uint32
}

func (v View) sees(uid uint32) bool { return v.All || v.Some && uid == v.UID }

type viewKey struct{}

// For is the context of a request whose caller may see so much. Without it he sees all.
func For(ctx context.Context, v View) context.Context {
	return context.WithValue(ctx, viewKey{}, v)
}

// maxPages is of how many users the pages are kept until the next sample; those of
// further ones are encoded for each request.
const maxPages = 16

// pages serves the last sample from memory.
type pages struct {
	c      *Collector
	others prometheus.Gatherer

	mu    sync.Mutex
	of    *sampler.Snapshot // the sample that the rest is of
	now   []window.Latest
	tail  []byte // of the process and the runtime
	users map[uint32]bool
	kept  map[View]*page

	zipping sync.Mutex
	zip     *gzip.Writer // whose tables are most of the cost of a page
}

// page is what one kind of caller gets.
type page struct {
	plain []byte
	once  sync.Once
	zip   []byte
}

// Handler serves the collector beside those of the process and the Go runtime.
func Handler(c *Collector, more ...prometheus.Collector) (http.Handler, error) {
	r := prometheus.NewRegistry()
	for _, m := range more {
		if err := r.Register(m); err != nil {
			return nil, err
		}
	}
	return &pages{c: c, others: r}, nil
}

// ServeHTTP implements http.Handler.
func (s *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, limited := r.Context().Value(viewKey{}).(View)
	if !limited {
		v = View{All: true}
	}
	p := s.page(v)
	h := w.Header()
	h.Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	h.Add("Vary", "Accept-Encoding")
	body := p.plain
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = s.zipped(p)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a caller that left gets nothing
}

// page is that of the last sample. It is made by the first who asks for it.
func (s *pages) page(v View) *page {
	snap := s.c.snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if snap != s.of || s.kept == nil {
		s.of, s.now, s.tail = snap, s.c.store.Latest(), s.itself()
		s.kept, s.users = map[View]*page{}, map[uint32]bool{}
		for _, l := range s.now {
			s.users[l.Job.UID] = true
		}
		for _, u := range snap.Users {
			s.users[u.UID] = true
		}
	}
	switch { // one page for all who see the same
	case v.All:
		v = View{All: true}
	case v.Some && !s.users[v.UID]:
		v = View{}
	}
	if p := s.kept[v]; p != nil {
		return p
	}
	p := &page{plain: append(s.c.encode(snap, s.now, v), s.tail...)}
	if len(s.kept) < maxPages {
		s.kept[v] = p
	}
	return p
}

// itself is what the program tells of its own process; what of that cannot be had is
// left out, since the jobs matter more.
func (s *pages) itself() []byte {
	var out bytes.Buffer
	families, _ := s.others.Gather() // with an error come those that could be had
	for _, f := range families {
		_, _ = expfmt.MetricFamilyToText(&out, f) // into memory
	}
	return out.Bytes()
}

// zipped is the page for those who take it compressed.
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

// acceptsGzip tells whether a header names gzip without refusing it.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, q, weighted := strings.Cut(strings.TrimSpace(part), ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		if !weighted {
			return true
		}
		weight, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(q, " ", ""), "q="), 64)
		return err == nil && weight > 0
	}
	return false
}
