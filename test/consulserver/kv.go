package consulserver

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxBody is what Consul takes as a value, and as a transaction.
const maxBody = 512 << 10

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

func readBody(req *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err != nil {
		return nil, fail(http.StatusBadRequest, "%v", err)
	}
	if len(body) > maxBody {
		return nil, fail(http.StatusRequestEntityTooLarge, "Request body(%d bytes) too large, max size: %d bytes.", len(body), maxBody)
	}
	return body, nil
}

func (s *Server) getKey(req *http.Request, key string) (any, error) {
	out := []pair{}
	for _, name := range slices.Sorted(maps.Keys(s.keys)) {
		if name == key || req.URL.Query().Has("recurse") && strings.HasPrefix(name, key) {
			out = append(out, s.keys[name])
		}
	}
	if len(out) == 0 {
		return nil, fail(http.StatusNotFound, "")
	}
	return out, nil
}

func (s *Server) deleteKey(_ *http.Request, key string) (any, error) {
	delete(s.keys, key)
	s.index++
	return true, nil
}

// set writes a key; its lock stays.
func (s *Server) set(key string, value []byte) pair {
	s.index++
	p, ok := s.keys[key]
	if !ok {
		p = pair{Key: key, CreateIndex: s.index}
	}
	p.Value, p.ModifyIndex = value, s.index
	s.keys[key] = p
	return p
}

// lockKey writes a key and takes or frees its lock. It answers false where another session
// has the lock.
func (s *Server) lockKey(req *http.Request, key string) (any, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	q := req.URL.Query()
	acquires, releases := q.Has("acquire"), q.Has("release")
	id, held := q.Get("acquire")+q.Get("release"), s.keys[key].Session
	switch {
	case acquires && s.sessions[id] == nil:
		return nil, fail(http.StatusInternalServerError, "invalid session %q", id)
	case acquires && (held != "" && held != id || time.Now().Before(s.delays[key])), releases && (held == "" || held != id):
		return false, nil
	}
	p := s.set(key, body)
	switch {
	case acquires:
		if held != id {
			p.LockIndex++
		}
		p.Session = id
	case releases:
		p.Session = ""
	}
	s.keys[key] = p
	return true, nil
}

type txnResult struct{ KV pair }

type txnError struct {
	OpIndex int
	What    string
}

type txnErrors struct {
	Results []txnResult
	Errors  []txnError
}

// transact does one checked write. Its answer has no value.
func (s *Server) transact(req *http.Request, _ string) (any, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	var ops []struct {
		KV struct {
			Verb, Key string
			Value     []byte
			Index     uint64
		}
	}
	if err := json.Unmarshal(body, &ops); err != nil || len(ops) != 1 || ops[0].KV.Verb != "cas" {
		return nil, fail(http.StatusNotFound, "this server knows transactions of one checked write")
	}
	op := ops[0].KV
	if s.keys[op.Key].ModifyIndex != op.Index {
		return txnErrors{Errors: []txnError{{0, "failed to set key \"" + op.Key + "\", index is stale"}}}, nil
	}
	p := s.set(op.Key, op.Value)
	p.Value = nil
	return txnErrors{Results: []txnResult{{p}}}, nil
}
