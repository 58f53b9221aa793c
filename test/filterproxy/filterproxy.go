package filterproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	exporterapi "pitchpipe/exporter/api"
)

// HideNeighbours removes from a window the columns about other processes, and the times at
// which the exporter read the lines of its marks: it reads late on a busy machine.
func HideNeighbours(w *exporterapi.Window) {
	for _, s := range w.Samples {
		delete(s.Values, exporterapi.ColNodeBusy)
		delete(s.Values, exporterapi.ColNodeSteal)
		delete(s.Values, exporterapi.ColCPUPressure)
		if s.Mark != nil {
			s.Mark.Time = time.Time{}
		}
	}
}

// Serve listens on a Unix socket and forwards to the exporter's until ctx ends. The
// exporter sees this process's user, and answers what that user may see.
func Serve(ctx context.Context, socket, exporter string) error {
	var dialer net.Dialer
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", exporter)
	}}
	defer transport.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "exporter"}) },
		Transport:      transport,
		ModifyResponse: filter,
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// filter hides the neighbours in an answer that holds samples.
func filter(r *http.Response) error {
	if r.StatusCode != http.StatusOK || !strings.HasSuffix(r.Request.URL.Path, "/window") {
		return nil
	}
	var w exporterapi.Window
	if err := errors.Join(json.NewDecoder(r.Body).Decode(&w), r.Body.Close()); err != nil {
		return fmt.Errorf("the exporter's answer: %w", err)
	}
	HideNeighbours(&w)
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
