import{a as o}from"./chunk-A4ZHVQPD.js";import"./chunk-YQ5L3GLK.js";import"./chunk-NDPAIEZH.js";import"./chunk-BUYNQUEB.js";export{o as Preferences};
