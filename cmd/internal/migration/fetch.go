package migration

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

const (
	// fetchTime limits the time for one file: enough for maxFetched at 3.5 MB a second.
	fetchTime  = 5 * time.Minute
	maxFetched = 1 << 30 // bytes of one file, Slack's own limit
	maxHops    = 3       // redirections for one file
)

// fetchHosts are the only hosts that each format fetches from.
var fetchHosts = map[string]string{"slack": "files.slack.com", "teams": "graph.microsoft.com"}

var errOtherHost = errors.New("the address is of another host")

// fetcher returns a function that fetches from the host of the exporting server. A file that the host does not give is
// reported as missing.
func fetcher(transport http.RoundTripper, host string) func(address, token string) (io.ReadCloser, error) {
	client := &http.Client{Transport: transport, Timeout: fetchTime, CheckRedirect: func(r *http.Request,
		via []*http.Request,
	) error {
		if len(via) > maxHops {
			return errors.New("too many redirections")
		}
		return checkHost(r.URL, host)
	}}
	return func(address, token string) (io.ReadCloser, error) {
		u, err := url.Parse(address)
		if err == nil {
			err = checkHost(u, host)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
		}
		request := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(request)
		if errors.Is(err, errOtherHost) {
			return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
		}
		if err != nil {
			return nil,
				errors.New("no answer from " + host + ": run the command again to continue")
		}
		// Without a valid token, Slack answers with the page of the login instead of an error.
		page := strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") &&
			!strings.HasPrefix(path.Ext(u.Path), ".htm")
		if answer.StatusCode >= 400 && answer.StatusCode < 500 && answer.StatusCode != http.StatusTooManyRequests ||
			page {
			answer.Body.Close()
			return nil, fmt.Errorf("%w: %s answered with status %d", fs.ErrNotExist, host, answer.StatusCode)
		}
		if answer.StatusCode != http.StatusOK {
			answer.Body.Close()
			return nil, fmt.Errorf("%s answered with status %d: run the command again to continue", host,
				answer.StatusCode)
		}
		return &fetched{limitedReader{answer.Body, maxFetched}, answer.Body}, nil
	}
}

func checkHost(u *url.URL, host string) error {
	if u.Scheme != "https" || u.Host != host {
		return fmt.Errorf("%w than https://%s", errOtherHost, host)
	}
	return nil
}

// fetched is a file that is being fetched.
type fetched struct {
	limitedReader
	body io.Closer
}

func (f *fetched) Close() error { return f.body.Close() }
