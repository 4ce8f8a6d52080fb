import{a as o}from"./chunk-T3G6O23I.js";import"./chunk-4C3QJI5B.js";import"./chunk-YYCZNCAK.js";export{o as Privacy};
