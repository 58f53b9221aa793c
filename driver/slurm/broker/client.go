package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/slurmctl"
	"pitchpipe/exporter/api/peercred"
)

// DefaultTimeout bounds one request of a Client.
const DefaultTimeout = 2 * time.Minute

// Client asks a broker. It has the verbs of slurmctl.Actor except slurmctl.Cancel, which no broker
// has. Its errors wrap package driver's: ErrTransient where the broker was not reached, ErrUnknown
// where it was and its outcome is unknown.
type Client struct {
	// Timeout bounds one request; 0 = DefaultTimeout.
	Timeout time.Duration

	http *http.Client
}

var (
	_ slurmctl.Actor = (*Client)(nil)
	_ slurmctl.Judge = (*Client)(nil)
)

// NewClient returns a client of the broker on this socket.
func NewClient(socket string) *Client {
	t := peercred.Transport(socket)
	// One request a connection: of a connection that breaks it is unknown whether
	// the broker had read the request.
	t.DisableKeepAlives = true
	return &Client{http: peercred.Client(t)}
}

// Script returns the batch script of a job that has a stanza. Of one that has none it
// returns the first line.
func (c *Client) Script(ctx context.Context, job string) ([]byte, error) {
	r, err := c.ask(ctx, verbScript, request{Job: job})
	return r.Script, err
}

func (c *Client) do(ctx context.Context, verb string, req request) error {
	_, err := c.ask(ctx, verb, req)
	return err
}

// Signal sends the signal that the job's stanza names.
func (c *Client) Signal(ctx context.Context, job, signal string) error {
	return c.do(ctx, verbSignal, request{Job: job, Signal: signal})
}

// Do puts a job back into the queue that was asked to save (Requeue), whose running attempt the
// controller set up (Discard), or that was killed for less memory than its owner asked for, with
// his (Rerun); or it lets a job go that the cluster holds because it saved for us (Release).
func (c *Client) Do(ctx context.Context, v slurmctl.Verb, job string) error {
	if v == slurmctl.Cancel {
		return fmt.Errorf("the broker ends no job; the owner of job %s cancels it with scancel: %w", job, driver.ErrDenied)
	}
	return c.do(ctx, string(v), request{Job: job})
}

// Update changes a job that waits.
func (c *Client) Update(ctx context.Context, job string, u slurmctl.Update) error {
	return c.do(ctx, verbUpdate, request{Job: job, Update: &u})
}

// May asks whether Update would be refused once the job waits, so that a job that runs
// is not stopped for nothing. Its answer is of now; nothing is done.
func (c *Client) May(ctx context.Context, job string, u slurmctl.Update) error {
	return c.do(ctx, verbMay, request{Job: job, Update: &u})
}

// Advise sets the time limit and the nice value of a job that waits, or gives a job back what
// its owner asked for.
func (c *Client) Advise(ctx context.Context, a driver.Advice) error {
	return c.do(ctx, verbAdvise, request{Job: string(a.Job), Advice: &a})
}

func (c *Client) ask(ctx context.Context, verb string, req request) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, DefaultTimeout))
	defer cancel()
	answer, err := peercred.Ask(ctx, c.http, http.MethodPost, "http://broker/v1/"+verb, req) // every request can be made
	if err != nil {
		return response{}, lost(verb, err)
	}
	var out response
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse))
	err = errors.Join(err, answer.Body.Close())
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return response{}, lost(verb, err)
	}
	if answer.StatusCode == http.StatusOK {
		return out, nil
	}
	for _, k := range kinds() {
		if k.word == out.Kind {
			return response{}, &remote{text: out.Error, cause: k.err}
		}
	}
	return response{}, lost(verb, fmt.Errorf("an answer of kind %q", out.Kind))
}

// lost is the error of a request whose answer did not come.
func lost(verb string, err error) error {
	connection, ok := errors.AsType[*net.OpError](err)
	if verb == verbScript || verb == verbMay || ok && connection.Op == "dial" { // it was not sent
		return fmt.Errorf("broker: %s: %w: %w", verb, driver.ErrTransient, err)
	}
	return fmt.Errorf("broker: %s: %w: %w", verb, driver.ErrUnknown, err)
}
