package consulserver

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
)

const maxOps = 128

type txnOp struct {
	KV *struct {
		Verb    string
		Key     string
		Value   []byte
		Flags   uint64
		Index   uint64
		Session string
	}
}

type txnError struct {
	OpIndex int
	What    string
}

type txnResult struct{ KV *pair }

// serveTxn does all of a transaction or nothing.
func (s *Server) serveTxn(w http.ResponseWriter, req *http.Request) {
	if !method(w, req, http.MethodPut) {
		return
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxValue+1))
	if err != nil {
		return // who has gone gets no answer
	}
	if len(body) > maxValue {
		answerError(w, fail(http.StatusRequestEntityTooLarge, "Request body(%d bytes) too large, max size: %d bytes.", max(req.ContentLength, maxValue+1), maxValue))
		return
	}
	var ops []txnOp
	if err := json.Unmarshal(body, &ops); err != nil {
		answerError(w, fail(http.StatusBadRequest, "Failed to parse body: %v", err))
		return
	}
	if len(ops) > maxOps {
		answerError(w, fail(http.StatusRequestEntityTooLarge, "Transaction contains too many operations (%d > %d)", len(ops), maxOps))
		return
	}
	results, faults := s.transact(ops)
	if len(faults) > 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(map[string]any{"Results": nil, "Errors": faults}) // who has gone gets no answer
		return
	}
	answer(w, map[string]any{"Results": results, "Errors": nil})
}

func (s *Server) transact(ops []txnOp) (results []txnResult, faults []txnError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, graves := maps.Clone(s.keys), maps.Clone(s.graves) // pairs are replaced and never changed in place, but for locks
	for i, op := range ops {
		p, err := s.apply(op)
		if err != nil {
			faults = append(faults, txnError{OpIndex: i, What: err.Error()})
			continue
		}
		if p != nil {
			results = append(results, txnResult{p})
		}
	}
	if len(faults) > 0 {
		s.keys, s.graves = keys, graves
		return nil, faults
	}
	return results, nil
}

// apply does one operation; its result has no value, except that of a get.
func (s *Server) apply(op txnOp) (*pair, error) {
	if op.KV == nil {
		return nil, fmt.Errorf("unknown operation")
	}
	o := op.KV
	old := s.keys[o.Key]
	bare := func(p *pair) *pair {
		out := *p
		out.Value = nil
		return &out
	}
	switch o.Verb {
	case "set":
		return bare(s.set(o.Key, o.Value, o.Flags)), nil
	case "cas":
		if !current(old, o.Index) {
			return nil, fmt.Errorf("failed to set key %q, index is stale", o.Key)
		}
		return bare(s.set(o.Key, o.Value, o.Flags)), nil
	case "get":
		if old == nil {
			return nil, fmt.Errorf("key %q doesn't exist", o.Key)
		}
		return old, nil
	case "delete":
		if old != nil {
			s.remove(o.Key)
		}
		return nil, nil //nolint:nilnil // a deletion has no result
	case "delete-cas":
		if old != nil && old.ModifyIndex != o.Index {
			return nil, fmt.Errorf("failed to delete key %q, index is stale", o.Key)
		}
		if old != nil {
			s.remove(o.Key)
		}
		return nil, nil //nolint:nilnil // a deletion has no result
	case "check-index":
		switch {
		case old == nil:
			return nil, fmt.Errorf("key %q doesn't exist", o.Key)
		case old.ModifyIndex != o.Index:
			return nil, fmt.Errorf("current modify index of %d doesn't match", old.ModifyIndex)
		}
		return bare(old), nil
	case "check-session":
		switch {
		case old == nil:
			return nil, fmt.Errorf("failed to check session of key %q, entry does not exist", o.Key)
		case old.Session != o.Session:
			return nil, fmt.Errorf("current session %q does not match", old.Session)
		}
		return bare(old), nil
	case "check-not-exists":
		if old != nil {
			return nil, fmt.Errorf("key %q exists", o.Key)
		}
		return nil, nil //nolint:nilnil // what is not there has no result
	}
	return nil, fmt.Errorf("unknown KV verb %q", o.Verb)
}
