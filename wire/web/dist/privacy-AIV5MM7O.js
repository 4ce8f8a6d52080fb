import{a as o}from"./chunk-NVWKXDAD.js";import"./chunk-EIVIGQGC.js";import"./chunk-AOGBZIBD.js";import"./chunk-2KB6ARPR.js";export{o as Privacy};
