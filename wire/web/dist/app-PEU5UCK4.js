import{tb as r}from"./chunk-RNHWOEMS.js";r();
