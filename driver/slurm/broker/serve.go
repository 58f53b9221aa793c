package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/exporter/api/peercred"
)

// Run serves until the context ends, and then until the requests that began are done.
func (s *Server) Run(ctx context.Context) (err error) {
	lock, err := durable.Lock(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	defer func() { err = errors.Join(err, durable.Unlock(lock)) }()
	l, err := peercred.Listen(ctx, s.cfg.Socket)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	tidying, stop := context.WithCancel(ctx)
	var housework sync.WaitGroup
	housework.Go(func() { s.prune(tidying) })
	defer housework.Wait()
	defer stop()
	s.cfg.Logger.Info("listening", "socket", s.cfg.Socket)
	// What began is finished: a command that is cut off may have had its effect.
	server := &http.Server{Handler: peercred.Unhurried(s.handler(), maxRequest), ConnContext: withCaller}
	if err := peercred.Serve(ctx, server, s.gate(l), graceful); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/"+verbScript, s.answer(verbScript, func(ctx context.Context, _ uint32, req request) (response, error) {
		script, err := s.script(ctx, req.Job)
		return response{Script: script}, err
	}))
	mux.HandleFunc("POST /v1/"+verbMay, s.answer(verbMay, func(ctx context.Context, peer uint32, req request) (response, error) {
		return response{}, s.may(ctx, peer, req)
	}))
	for verb, p := range plans() {
		mux.HandleFunc("POST /v1/"+verb, s.answer(verb, func(ctx context.Context, peer uint32, req request) (response, error) {
			return response{}, s.effect(ctx, peer, verb, req, p)
		}))
	}
	return mux
}

// longest bounds one request: some commands of half a minute each.
const longest = 100 * time.Second

// graceful is how long those that began are waited for. The service's unit waits longer.
const graceful = longest + 10*time.Second

func (s *Server) answer(verb string, do func(context.Context, uint32, request) (response, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := s.ask(w, r, verb, do)
		status := http.StatusOK
		if err != nil {
			k := kindOf(err)
			status, out = k.status, response{Kind: k.word, Error: err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(out); err != nil {
			s.cfg.Logger.Debug("an answer did not go out", "error", err)
		}
	}
}

func (s *Server) ask(w http.ResponseWriter, r *http.Request, verb string, do func(context.Context, uint32, request) (response, error)) (response, error) {
	peer, err := s.admit(r.Context())
	if err != nil {
		s.complaints.Add(peercred.Caller{UID: peer}.String(), fmt.Errorf("%s: %w", verb, err))
		w.Header().Set("Connection", "close") // others wait for its place
		return response{}, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return response{}, fmt.Errorf("a request above %d bytes, or cut off: %w: %w", maxRequest, driver.ErrInvalid, err)
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		return response{}, fmt.Errorf("a request that cannot be read: %w: %w", driver.ErrInvalid, err)
	}
	// A client that goes away does not cut off a command that has an effect.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), longest)
	defer cancel()
	return do(ctx, peer, req)
}
