package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"pitchpipe/controller/advise"
	"pitchpipe/controller/report"
	"pitchpipe/controller/trials"
	"pitchpipe/exporter/api/peercred"
)

// Errors of the client.
var (
	ErrUnavailable = errors.New("controller not reachable")
	ErrInvalid     = errors.New("invalid")
	ErrNotFound    = errors.New("not found")
	ErrDenied      = errors.New("denied")
	// ErrUsersSubmit: the job file is good, and its user submits it himself.
	ErrUsersSubmit = errors.New("not the controller's to submit")
	// ErrUsersStop: the controller has no right to stop it, and its user has.
	ErrUsersStop = errors.New("not the controller's to stop")
	// ErrUsersDeregister is ErrUsersStop of a job of Nomad.
	ErrUsersDeregister = errors.New("not the controller's to deregister")
	// ErrStandby: another controller leads, and the text names it.
	ErrStandby = errors.New("nothing was done")
)

// Client talks to a controller. Use NewClient.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient makes a client for the controller at the Unix socket.
func NewClient(socket string) *Client {
	return &Client{socket: socket, http: peercred.Client(peercred.Transport(socket))}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Submit runs a job file.
func (c *Client) Submit(ctx context.Context, s Submission) (Job, error) {
	return answer[Job](ctx, c, http.MethodPost, PathJobs, s)
}

// HeadStart asks with what a job is to be submitted that is about to be. An error says
// nothing about the job: it can be submitted as it is.
func (c *Client) HeadStart(ctx context.Context, job json.RawMessage) (HeadStart, error) {
	return answer[HeadStart](ctx, c, http.MethodPost, PathHeadStarts, job)
}

// Validate judges a job file. A file with errors is an answer, not an error.
func (c *Client) Validate(ctx context.Context, d Draft) (Verdict, error) {
	return answer[Verdict](ctx, c, http.MethodPost, PathValidate, d)
}

// Jobs lists the jobs, oldest first.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) { return get[[]Job](ctx, c, PathJobs) }

// Job returns one job.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	return get[Job](ctx, c, path(PathJob, id))
}

// Explain returns a job's story.
func (c *Client) Explain(ctx context.Context, id string) (Story, error) {
	return get[Story](ctx, c, path(PathExplain, id))
}

// Replay returns a job's story with its decisions made again.
func (c *Client) Replay(ctx context.Context, id string) (Story, error) {
	return get[Story](ctx, c, path(PathExplain, id)+"?replay=true")
}

// History returns what happened, newest last.
func (c *Client) History(ctx context.Context) ([]Event, error) {
	return get[[]Event](ctx, c, PathHistory)
}

// Knowledge returns what was learned.
func (c *Client) Knowledge(ctx context.Context) (Knowledge, error) {
	return get[Knowledge](ctx, c, PathKnowledge)
}

// Observations copies what the jobs taught, as it was measured, to w: one JSON
// object a line.
func (c *Client) Observations(ctx context.Context, w io.Writer) error {
	_, err := c.copy(ctx, PathObservations, w)
	return err
}

// Report sums up the jobs of the last time, such as "30d", by what report.By
// lists; both may be empty.
func (c *Client) Report(ctx context.Context, since string, by report.By) (report.Table, error) {
	q := url.Values{"since": {since}, "by": {string(by)}}
	return get[report.Table](ctx, c, PathReport+"?"+q.Encode())
}

// Search begins the search of a job file.
func (c *Client) Search(ctx context.Context, s Submission) (trials.State, error) {
	return answer[trials.State](ctx, c, http.MethodPost, PathSearches, s)
}

// Searches lists the searches, the oldest first, without their job files.
func (c *Client) Searches(ctx context.Context) ([]trials.State, error) {
	return get[[]trials.State](ctx, c, PathSearches)
}

// SearchState is one search.
func (c *Client) SearchState(ctx context.Context, id string) (trials.State, error) {
	return get[trials.State](ctx, c, searchPath(PathSearch, id))
}

// StopSearch ends a search and its jobs.
func (c *Client) StopSearch(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, searchPath(PathSearchStop, id), nil)
}

// ResumeSearch goes on with a search that is over; trials above 0 is how many it has in all from now on.
func (c *Client) ResumeSearch(ctx context.Context, id string, trials int) error {
	q := ""
	if trials > 0 {
		q = "?trials=" + strconv.Itoa(trials)
	}
	return c.do(ctx, http.MethodPost, searchPath(PathSearchResume, id)+q, nil)
}

func searchPath(pattern, id string) string {
	return strings.Replace(pattern, "{search}", url.PathEscape(id), 1)
}

// Off switches tuning off for a job.
func (c *Client) Off(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, path(PathOff, id), nil)
}

// Stop cancels a job.
func (c *Client) Stop(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, path(PathStop, id), nil)
}

// Pauses lists the pauses in force.
func (c *Client) Pauses(ctx context.Context) ([]Pause, error) {
	return get[[]Pause](ctx, c, PathPauses)
}

// Advice is what the scheduler is advised about the caller's jobs, and the outcome.
func (c *Client) Advice(ctx context.Context) ([]advise.Item, error) {
	return get[[]advise.Item](ctx, c, PathAdvice)
}

// Pause stops all effects in a scope.
func (c *Client) Pause(ctx context.Context, p Pause) error {
	return c.do(ctx, http.MethodPost, PathPauses, p)
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context, scope, name string) error {
	q := url.Values{"scope": {scope}, "name": {name}}
	return c.do(ctx, http.MethodDelete, PathPauses+"?"+q.Encode(), nil)
}

// Logs copies a job's output from offset on to w and returns how much it wrote.
func (c *Client) Logs(ctx context.Context, id string, offset int64, w io.Writer) (int64, error) {
	return c.copy(ctx, path(PathLogs, id)+"?offset="+strconv.FormatInt(offset, 10), w)
}

func (c *Client) copy(ctx context.Context, target string, w io.Writer) (int64, error) {
	resp, err := c.send(ctx, http.MethodGet, target, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return io.Copy(w, resp.Body)
}

func path(pattern, id string) string {
	// As one segment: an id may hold // or .., by which a server redirects.
	return strings.Replace(pattern, "{id...}", strings.ReplaceAll(url.PathEscape(id), ".", "%2E"), 1)
}

func get[T any](ctx context.Context, c *Client, target string) (T, error) {
	return answer[T](ctx, c, http.MethodGet, target, nil)
}

func answer[T any](ctx context.Context, c *Client, method, target string, in any) (out T, err error) {
	resp, err := c.send(ctx, method, target, in)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("read the controller's answer: %w", err)
	}
	return out, nil
}

func (c *Client) do(ctx context.Context, method, target string, in any) error {
	resp, err := c.send(ctx, method, target, in)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (c *Client) send(ctx context.Context, method, target string, in any) (*http.Response, error) {
	resp, err := peercred.Ask(ctx, c.http, method, "http://controller"+target, in)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if _, sent := errors.AsType[*url.Error](err); !sent {
			return nil, err
		}
		if dial, ok := errors.AsType[*net.OpError](err); ok {
			err = dial.Err // the rest repeats the socket
		}
		return nil, fmt.Errorf("%w at %s: is `pitchpipe controller` running? (%w)", ErrUnavailable, c.socket, err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	var p Problem
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&p); err != nil || p.Error == "" {
		if p.Error = resp.Status; resp.StatusCode < http.StatusBadRequest { // an id such as ../x leads elsewhere
			p.Error = "there is no such job or search: " + resp.Status
		}
	}
	return nil, problem{errorOf(p.Kind, resp.StatusCode), p.Error}
}

// problem is what the controller answers, as the error of its kind.
type problem struct {
	kind error
	text string
}

// Error leaves the kind out where the text says it.
func (p problem) Error() string {
	switch {
	case errors.Is(p.kind, ErrNotFound), errors.Is(p.kind, ErrDenied):
		return p.text
	case errors.Is(p.kind, ErrUnavailable): // it answered
		return "the controller could not do it: " + p.text
	}
	return p.kind.Error() + ": " + p.text
}

// Unwrap returns one of this package's errors.
func (p problem) Unwrap() error { return p.kind }

// errorOf is the error of an answer: by its kind, and by its status where it has none, as where
// it is not a controller's.
func errorOf(kind string, status int) error {
	kinds := map[string]error{
		"invalid": ErrInvalid, "not-found": ErrNotFound, "denied": ErrDenied, "users-submit": ErrUsersSubmit, "users-stop": ErrUsersStop, "users-deregister": ErrUsersDeregister, "standby": ErrStandby,
	}
	statuses := map[int]string{http.StatusBadRequest: "invalid", http.StatusNotFound: "not-found", http.StatusForbidden: "denied"}
	if status/100 == 3 { // an id such as ".." leads elsewhere
		status = http.StatusNotFound
	}
	if err, ok := kinds[cmp.Or(kind, statuses[status])]; ok {
		return err
	}
	return ErrUnavailable
}
