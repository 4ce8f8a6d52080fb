package s3

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Place is where files are stored in a bucket.
type Place struct {
	Bucket    string
	Prefix    string // "" or a folder that ends with a slash
	Endpoint  string // host or host:port
	Secure    bool   // TLS
	Region    string
	PathStyle bool // the bucket is in the path, not in the host name
}

const (
	scheme        = "s3"
	defaultRegion = "us-east-1"
	maxPrefix     = 512 // bytes; S3 allows keys of 1024
)

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	prefixPart = regexp.MustCompile(`^[A-Za-z0-9_.=+-]+$`)
)

// ParsePlace parses a value such as
//
//	s3://bucket/folder?endpoint=https://s3.example.com&region=eu-1&path-style=true
//
// Without an endpoint it is Amazon's of the region. The value has no secrets: it can be seen in the list of processes.
func ParsePlace(text string) (p Place, err error) {
	fail := func(format string, args ...any) (Place, error) {
		return Place{}, fmt.Errorf("files: "+format, args...)
	}
	u, err := url.Parse(text)
	if err != nil { // the error has the text, which may have a password
		return fail("not an address such as s3://bucket/folder?endpoint=https://s3.example.com")
	}
	query, err := url.ParseQuery(u.RawQuery)
	switch {
	case u.Scheme != scheme:
		return fail("must begin with s3://, not %q; without the setting files are in the data directory", u.Scheme)
	case u.User != nil:
		return fail("must not contain keys or passwords; put them into AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY or the file of files-credentials")
	case u.Fragment != "" || err != nil:
		return fail("the part after the bucket is not valid")
	case !bucketName.MatchString(u.Host) || strings.Contains(u.Host, ".."):
		return fail("%q is not the name of a bucket (3 to 63 of a-z, 0-9, dot and hyphen)", u.Host)
	}
	p = Place{Bucket: u.Host, Region: defaultRegion, Secure: true}
	if folder := strings.Trim(u.Path, "/"); folder != "" {
		for _, part := range strings.Split(folder, "/") {
			if part == "." || part == ".." || !prefixPart.MatchString(part) {
				return fail("%q is not a folder in a bucket (letters, digits and _.=+- between slashes)", folder)
			}
		}
		if p.Prefix = folder + "/"; len(p.Prefix) > maxPrefix {
			return fail("the folder must not be longer than %d bytes", maxPrefix)
		}
	}
	endpoint := ""
	for name, values := range query {
		value := values[0]
		switch {
		case len(values) > 1:
			return fail("%s is given twice", name)
		case name == "endpoint":
			endpoint = value
		case name == "region" && regionName.MatchString(value):
			p.Region = value
		case name == "region":
			return fail("%q is not a region", value)
		case name == "path-style":
			if p.PathStyle, err = strconv.ParseBool(value); err != nil {
				return fail("path-style must be true or false, not %q", value)
			}
		default:
			return fail("unknown parameter %q; known are endpoint, region and path-style", name)
		}
	}
	if endpoint == "" {
		p.Endpoint = "s3." + p.Region + ".amazonaws.com"
		return p, nil
	}
	return p, p.setEndpoint(endpoint)
}

func (p *Place) setEndpoint(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("files: endpoint must be https://host:port or http://host:port, without a path")
	}
	p.Endpoint, p.Secure = u.Host, u.Scheme == "https"
	return nil
}

// String returns the place in the form of ParsePlace, the same for every way to write it.
func (p Place) String() string {
	q := url.Values{"endpoint": {map[bool]string{true: "https://", false: "http://"}[p.Secure] + p.Endpoint},
		"region": {p.Region}, "path-style": {strconv.FormatBool(p.PathStyle)}}
	names := []string{"endpoint", "region", "path-style"}
	slices.Sort(names)
	var parts []string
	for _, n := range names {
		parts = append(parts, n+"="+q.Get(n))
	}
	return "s3://" + p.Bucket + "/" + p.Prefix + "?" + strings.Join(parts, "&")
}

// Plaintext reports whether files and signatures cross a network unencrypted.
func (p Place) Plaintext() bool {
	host, _, err := net.SplitHostPort(p.Endpoint)
	if err != nil {
		host = p.Endpoint
	}
	ip := net.ParseIP(host)
	return !p.Secure && host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// The environment variables of credentials, as every tool for S3 has them.
const (
	envKey    = "AWS_ACCESS_KEY_ID"
	envSecret = "AWS_SECRET_ACCESS_KEY"
)

// loadCredentials returns the keys from a file in the format of ~/.aws/credentials (profile default), or without a file
// from the environment. The file is read again when a key in it has an expiry.
func loadCredentials(file string) (*credentials.Credentials, error) {
	if file == "" {
		if os.Getenv(envKey) == "" || os.Getenv(envSecret) == "" {
			return nil, fmt.Errorf("files: no keys for the bucket: set %s and %s in the environment, or "+
				"files-credentials to a file with them", envKey, envSecret)
		}
		return credentials.NewEnvAWS(), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("files-credentials: %w", err)
	}
	f.Close()
	c := credentials.NewFileAWSCredentials(file, "default")
	v, err := c.GetWithContext(nil)
	if err != nil || v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return nil, fmt.Errorf("files-credentials: %s must have a section [default] with aws_access_key_id and "+
			"aws_secret_access_key", file)
	}
	return c, nil
}
