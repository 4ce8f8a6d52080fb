import{eb as r}from"./chunk-7AMPP6T2.js";r();
