import{hb as r}from"./chunk-MMWV4INU.js";r();
