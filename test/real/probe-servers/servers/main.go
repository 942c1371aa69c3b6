// Servers to be probed, of other hands: net/http over HTTP/1.1, h2c and TLS, grpc-go's health service in plaintext and TLS.
// Prints their addresses as one line of JSON and runs until its stdin ends.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	certificate := selfSigned()
	addresses := map[string]string{}
	serve := func(name string, run func(net.Listener) error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		addresses[name] = listener.Addr().String()
		go func() { log.Fatal(run(listener)) }()
	}
	quiet := log.New(io.Discard, "", 0)

	serve("http1", func(listener net.Listener) error {
		return (&http.Server{Handler: pages(), ErrorLog: quiet}).Serve(listener)
	})
	serve("h2c", func(listener net.Listener) error {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		return (&http.Server{Handler: pages(), Protocols: protocols, ErrorLog: quiet}).Serve(listener)
	})
	serve("tlsH2", func(listener net.Listener) error {
		server := &http.Server{Handler: pages(), ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
		return server.ServeTLS(listener, "", "")
	})
	serve("grpc", func(listener net.Listener) error { return healthServer().Serve(listener) })
	serve("grpcTLS", func(listener net.Listener) error {
		return healthServer(grpc.Creds(credentials.NewServerTLSFromCert(&certificate))).Serve(listener)
	})
	serve("grpcWithoutHealth", func(listener net.Listener) error { return grpc.NewServer().Serve(listener) })

	line, _ := json.Marshal(addresses)
	fmt.Println(string(line))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) { fmt.Fprint(answer, request.Proto) })
	mux.HandleFunc("/broken", func(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(500) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() })
	// As handlers that are in the middle of something: net/http counts them until they return, whatever became of their streams.
	mux.HandleFunc("/stubborn", func(_ http.ResponseWriter, request *http.Request) {
		<-request.Context().Done()
		time.Sleep(10 * time.Second)
	})
	return mux
}

func healthServer(options ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(options...)
	service := health.NewServer()
	service.SetServingStatus("down", healthpb.HealthCheckResponse_NOT_SERVING)
	healthpb.RegisterHealthServer(server, service)
	return server
}

func selfSigned() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "probe-servers"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
