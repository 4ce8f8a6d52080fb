import{a as o}from"./chunk-4DTARS5P.js";import"./chunk-RWOHMXR7.js";import"./chunk-IMS57PPJ.js";import"./chunk-VWXDAQYC.js";import"./chunk-AGF42KRU.js";export{o as Preferences};
