import{a as o}from"./chunk-W3A3ZLJS.js";import"./chunk-YQ5L3GLK.js";import"./chunk-NDPAIEZH.js";import"./chunk-BUYNQUEB.js";export{o as Privacy};
