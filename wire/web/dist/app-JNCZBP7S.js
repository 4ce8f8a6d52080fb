import{eb as r}from"./chunk-AADEWNYY.js";r();
