package consulserver

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxValue is what Consul takes as a value, and as a transaction.
const maxValue = 512 << 10

// pair is a key as Consul shows it.
type pair struct {
	LockIndex   uint64
	Key         string
	Flags       uint64
	Value       []byte // as base64; null where it is empty
	Session     string `json:",omitempty"`
	CreateIndex uint64
	ModifyIndex uint64
}

func (s *Server) serveKV(w http.ResponseWriter, req *http.Request, key string) {
	q := req.URL.Query()
	switch req.Method {
	case http.MethodGet:
		s.getKV(w, req, key)
	case http.MethodPut:
		s.putKV(w, req, key)
	case http.MethodDelete:
		if key == "" && !q.Has("recurse") {
			answerError(w, fail(http.StatusBadRequest, "Missing key name"))
			return
		}
		if q.Has("cas") && q.Has("recurse") {
			answerError(w, fail(http.StatusBadRequest, "Conflicting flags: recurse cas"))
			return
		}
		done, err := s.deleteKV(key, q)
		if err != nil {
			answerError(w, err)
			return
		}
		answer(w, done)
	default:
		w.Header().Set("Allow", "GET,PUT,DELETE")
		answerError(w, fail(http.StatusMethodNotAllowed, "method %s not allowed", req.Method))
	}
}

func (s *Server) getKV(w http.ResponseWriter, req *http.Request, key string) {
	q := req.URL.Query()
	recurse, names := q.Has("recurse"), q.Has("keys")
	if key == "" && !recurse && !names {
		answerError(w, fail(http.StatusBadRequest, "Missing key name"))
		return
	}
	s.query(w, req, func() (any, uint64) {
		if !recurse && !names {
			p, ok := s.keys[key]
			switch {
			case !ok:
				return nil, s.kvIndex
			case q.Has("raw"):
				return slices.Clone(p.Value), p.ModifyIndex
			}
			return []pair{*p}, p.ModifyIndex
		}
		found, index := s.under(key)
		switch {
		case len(found) == 0:
			return nil, index
		case names:
			return cut(found, key, q.Get("separator")), index
		}
		return found, index
	})
}

// under are the keys below a prefix in their order, and the index of the last change
// among them, deletions included.
func (s *Server) under(prefix string) ([]pair, uint64) {
	var out []pair
	var index uint64
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if strings.HasPrefix(key, prefix) {
			out = append(out, *s.keys[key])
			index = max(index, s.keys[key].ModifyIndex)
		}
	}
	for key, at := range s.graves {
		if strings.HasPrefix(key, prefix) {
			index = max(index, at)
		}
	}
	if index == 0 {
		index = s.kvIndex
	}
	return out, index
}

// cut are the names of keys, up to the first separator after the prefix, each once.
func cut(found []pair, prefix, separator string) []string {
	var out []string
	for _, p := range found {
		name := p.Key
		if i := strings.Index(name[len(prefix):], separator); separator != "" && i >= 0 {
			name = name[:len(prefix)+i+len(separator)]
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (s *Server) putKV(w http.ResponseWriter, req *http.Request, key string) {
	q := req.URL.Query()
	if key == "" {
		answerError(w, fail(http.StatusBadRequest, "Missing key name"))
		return
	}
	var given []string
	for _, flag := range []string{"cas", "acquire", "release"} {
		if q.Has(flag) {
			given = append(given, flag)
		}
	}
	if len(given) > 1 {
		answerError(w, fail(http.StatusBadRequest, "Conflicting flags: %s", strings.Join(given, " ")))
		return
	}
	value, err := io.ReadAll(io.LimitReader(req.Body, maxValue+1))
	if err != nil {
		return // who has gone gets no answer
	}
	if len(value) > maxValue {
		answerError(w, fail(http.StatusRequestEntityTooLarge, "Request body(%d bytes) too large, max size: %d bytes.", max(req.ContentLength, maxValue+1), maxValue))
		return
	}
	flags, err := strconv.ParseUint(orZero(q.Get("flags")), 10, 64)
	if err != nil {
		answerError(w, fail(http.StatusBadRequest, "%v", err))
		return
	}
	done, err := s.write(key, value, flags, q)
	if err != nil {
		answerError(w, err)
		return
	}
	answer(w, done)
}

func (s *Server) write(key string, value []byte, flags uint64, q url.Values) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.keys[key]
	switch {
	case q.Has("cas"):
		index, err := strconv.ParseUint(q.Get("cas"), 10, 64)
		if err != nil {
			return false, fail(http.StatusBadRequest, "%v", err)
		}
		if !current(old, index) {
			return false, nil
		}
	case q.Has("acquire"):
		id := q.Get("acquire")
		if s.sessions[id] == nil {
			return false, fail(http.StatusInternalServerError, "invalid session %q", id)
		}
		if old != nil && old.Session != "" && old.Session != id || time.Now().Before(s.delays[key]) {
			return false, nil
		}
		p := s.set(key, value, flags)
		if p.Session != id {
			p.LockIndex++
		}
		p.Session = id
		return true, nil
	case q.Has("release"):
		if old == nil || old.Session == "" || old.Session != q.Get("release") {
			return false, nil
		}
		s.set(key, value, flags).Session = ""
		return true, nil
	}
	s.set(key, value, flags)
	return true, nil
}

// current reports whether a key has this index; 0 means that it is not there.
func current(p *pair, index uint64) bool {
	if p == nil {
		return index == 0
	}
	return index != 0 && p.ModifyIndex == index
}

// set writes a key; its lock stays. The caller holds mu.
func (s *Server) set(key string, value []byte, flags uint64) *pair {
	if len(value) == 0 {
		value = nil
	}
	index := s.bump(&s.kvIndex)
	p := &pair{Key: key, CreateIndex: index}
	if old := s.keys[key]; old != nil {
		*p = *old
	}
	p.Value, p.Flags, p.ModifyIndex = value, flags, index
	s.keys[key] = p
	return p
}

// remove deletes a key. The caller holds mu.
func (s *Server) remove(key string) {
	delete(s.keys, key)
	s.graves[key] = s.bump(&s.kvIndex)
}

func (s *Server) deleteKV(key string, q url.Values) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case q.Has("recurse"):
		found, _ := s.under(key)
		for _, p := range found {
			s.remove(p.Key)
		}
		return true, nil
	case q.Has("cas"):
		index, err := strconv.ParseUint(q.Get("cas"), 10, 64)
		if err != nil {
			return false, fail(http.StatusBadRequest, "%v", err)
		}
		if index == 0 {
			return false, fail(http.StatusBadRequest, "Missing or invalid cas index")
		}
		if p := s.keys[key]; p != nil && p.ModifyIndex != index {
			return false, nil
		}
	}
	if s.keys[key] != nil {
		s.remove(key)
	}
	return true, nil
}
