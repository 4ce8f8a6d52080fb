import{sd as r}from"./chunk-BQJJFHAK.js";r();
